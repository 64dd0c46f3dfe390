{{/*
The containers and volumes of scanfeed in a pod. A chart that depends on this one includes "scanfeed.initContainers" and "scanfeed.volumes"
in its own pod, with .Subcharts.scanfeed as the context.
*/}}

{{/* Init containers for the application's pod, before its own: the migrations, if they run there, then the sidecar. */}}
{{- define "scanfeed.initContainers" -}}
{{- if eq .Values.database.migrations "initContainer" -}}
- {{ include "scanfeed.migration" . | nindent 2 | trim }}
{{ end -}}
{{- if eq .Values.mode "sidecar" -}}
- {{ include "scanfeed.sidecar" . | nindent 2 | trim }}
{{ end -}}
{{- end }}

{{/*
A native sidecar, which starts before the application and stops after it. It has no startup probe, which would delay the
application, and no readiness probe, which would take the whole pod out of service.
*/}}
{{- define "scanfeed.sidecar" -}}
{{ include "scanfeed.container" . }}
restartPolicy: Always
{{- end }}

{{- define "scanfeed.container" -}}
name: {{ include "scanfeed.name" . }}
{{ include "scanfeed.program" . }}
ports:
  - name: {{ include "scanfeed.portName" . }}
    containerPort: {{ .Values.port }}
{{- with .Values.livenessProbe }}
livenessProbe:
  {{- include "scanfeed.probe" (list $ .) | nindent 2 }}
{{- end }}
{{- if ne .Values.mode "sidecar" }}
{{- with .Values.startupProbe }}
startupProbe:
  {{- include "scanfeed.probe" (list $ .) | nindent 2 }}
{{- end }}
{{- with .Values.readinessProbe }}
readinessProbe:
  {{- include "scanfeed.probe" (list $ .) | nindent 2 }}
{{- end }}
{{- end }}
{{- with .Values.lifecycle }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A probe (list root probe) with its port `scanfeed` replaced by the name of the container's port. */}}
{{- define "scanfeed.probe" -}}
{{- $probe := deepCopy (index . 1) -}}
{{- if eq (toString (dig "httpGet" "port" "" $probe)) "scanfeed" -}}
{{- $_ := set $probe.httpGet "port" (include "scanfeed.portName" (index . 0)) -}}
{{- end -}}
{{ toYaml $probe }}
{{- end }}

{{- define "scanfeed.migration" -}}
name: {{ include "scanfeed.name" . | trunc 55 | trimSuffix "-" }}-migrate
args: [migrate]
{{ include "scanfeed.program" . }}
{{- end }}

{{- define "scanfeed.program" -}}
image: {{ include "scanfeed.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  {{- include "scanfeed.env" . | trim | nindent 2 }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: {{ include "scanfeed.name" . }}
    mountPath: /etc/scanfeed
    readOnly: true
  {{- range $index, $secret := (include "scanfeed.keySecrets" . | fromJson).names }}
  - name: {{ include "scanfeed.keyVolumeName" (list $ $index) }}
    mountPath: /etc/scanfeed-keys/{{ $secret }}
    readOnly: true
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Secrets are mounted as files, which are read again when they change. */}}
{{- define "scanfeed.env" -}}
{{- include "scanfeed.requireValues" . -}}
{{- $database := .Values.database -}}
{{- $env := dict
  "SCANFEED_ADMIN_PORT" .Values.port
  "SCANFEED_DATABASE_POOL" $database.connections
  "SCANFEED_AUTO_MIGRATE" (toString (eq $database.migrations "startup"))
  (ternary "PGPASSWORD_FILE" "DATABASE_URL_FILE" (ne $database.passwordKey "")) "/etc/scanfeed/database"
-}}
{{- if .Values.feeds }}
{{- $_ := set $env "SCANFEED_FEEDS_FILE" "/etc/scanfeed/feeds.yaml" }}
{{- /* Returns freed memory: a third of the memory of a thousand feeds. The image's larger value reads a single feed faster. */}}
{{- $_ := set $env "MALLOC_MMAP_THRESHOLD_" "16384" }}
{{- else }}
{{- $_ := set $env "SCANFEED_FEED" .Values.feed }}
{{- end }}
{{- if or .Values.baseUrl (not .Values.feeds) }}
{{- $_ := set $env "SCANFEED_BASE_URL" .Values.baseUrl }}
{{- end }}
{{- if or .Values.apiKey.existingSecret (not .Values.feeds) }}
{{- $_ := set $env "SCANFEED_API_KEY_FILE" "/etc/scanfeed/api-key" }}
{{- end }}
{{- if $database.migrationSecret.name }}
{{- $_ := set $env "SCANFEED_MIGRATION_DATABASE_URL_FILE" "/etc/scanfeed/migration-database" }}
{{- end }}
{{- if or $database.ca.configMap $database.ca.secret }}
{{- $_ := set $env "PGSSLROOTCERT" "/etc/scanfeed/database-ca.crt" }}
{{- /* As in libpq, CA certificates have no effect without a verifying sslmode. The address takes precedence over this. */}}
{{- if not (hasKey .Values.settings "PGSSLMODE") }}
{{- $_ := set $env "PGSSLMODE" "verify-full" }}
{{- end }}
{{- end }}
{{- if or .Values.ca.configMap .Values.ca.secret }}
{{- $_ := set $env "NODE_EXTRA_CA_CERTS" "/etc/scanfeed/ca.crt" }}
{{- end }}
{{- if .Values.proxy.existingSecret }}
{{- $_ := set $env "HTTPS_PROXY_FILE" "/etc/scanfeed/proxy" }}
{{- else if .Values.proxy.url }}
{{- $_ := set $env "HTTPS_PROXY" .Values.proxy.url }}
{{- end }}
{{- if .Values.proxy.noProxy }}
{{- $_ := set $env "NO_PROXY" .Values.proxy.noProxy }}
{{- end }}
{{- range $name, $value := merge (dict) $env .Values.settings }}
- name: {{ $name }}
  {{- if kindIs "bool" $value }}
  {{- /* YAML reads an unquoted off as false. Boolean settings accept off as well. */}}
  value: {{ ternary "true" "off" $value | quote }}
  {{- else }}
  {{- /* JSON writes large numbers without an exponent, which the program would reject. */}}
  value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
  {{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "scanfeed.volumes" -}}
{{- include "scanfeed.volumesWith" (list . (print (include "scanfeed.fullname" .) "-feeds")) }}
{{- end }}

{{/* The volumes with a ConfigMap of the feeds file: (list root name). */}}
{{- define "scanfeed.volumesWith" -}}
{{- $feedsConfigMap := index . 1 -}}
{{- with index . 0 -}}
{{- $root := . -}}
{{- $database := .Values.database -}}
{{- include "scanfeed.requireValues" . -}}
- name: {{ include "scanfeed.name" . }}
  projected:
    # 0444: readable for a user that is neither root nor in the group of the files.
    defaultMode: 292
    sources:
      {{- if or .Values.apiKey.existingSecret (not .Values.feeds) }}
      - secret:
          name: {{ .Values.apiKey.existingSecret }}
          items:
            - key: {{ .Values.apiKey.key }}
              path: api-key
      {{- end }}
      {{- if .Values.feeds }}
      - configMap:
          name: {{ $feedsConfigMap }}
          items:
            - key: feeds.yaml
              path: feeds.yaml
      {{- end }}
      - secret:
          name: {{ $database.existingSecret }}
          items:
            - key: {{ default $database.key $database.passwordKey }}
              path: database
      {{- with $database.migrationSecret }}
      {{- if .name }}
      - secret:
          name: {{ .name }}
          items:
            - key: {{ .key }}
              path: migration-database
      {{- end }}
      {{- end }}
      {{- with .Values.proxy }}
      {{- if .existingSecret }}
      - secret:
          name: {{ .existingSecret }}
          items:
            - key: {{ .key }}
              path: proxy
      {{- end }}
      {{- end }}
      {{- range $path, $ca := dict "ca.crt" .Values.ca "database-ca.crt" $database.ca }}
      {{- if or $ca.configMap $ca.secret }}
      - {{ ternary "configMap" "secret" (ne $ca.configMap "") }}:
          name: {{ default $ca.secret $ca.configMap }}
          items:
            - key: {{ $ca.key }}
              path: {{ $path }}
      {{- end }}
      {{- end }}
{{- range $index, $secret := (include "scanfeed.keySecrets" . | fromJson).names }}
- name: {{ include "scanfeed.keyVolumeName" (list $root $index) }}
  secret:
    secretName: {{ $secret }}
    defaultMode: 292
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}
