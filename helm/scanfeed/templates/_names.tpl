{{- define "scanfeed.name" -}}
{{- default "scanfeed" .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Name of the container's port: at most 15 characters. */}}
{{- define "scanfeed.portName" -}}
{{- include "scanfeed.name" . | trunc 15 | trimSuffix "-" }}
{{- end }}

{{- define "scanfeed.fullname" -}}
{{- $name := include "scanfeed.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $release := .Release.Name | replace "." "-" }}{{/* a release name can contain dots, a Service name cannot */}}
{{- ternary $release (printf "%s-%s" $release $name) (contains $name $release) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "scanfeed.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{/*
Name and namespace of an object that may be in another namespace: (list root namespace suffix). There its name begins with the
namespace of the pods, because releases of several namespaces may have the same name.
*/}}
{{- define "scanfeed.placement" -}}
{{- $own := include "scanfeed.namespace" (index . 0) -}}
{{- $namespace := default $own (index . 1) -}}
{{- $prefix := ternary "" (print $own "-") (eq $namespace $own) -}}
name: {{ $prefix }}{{ include "scanfeed.fullname" (index . 0) }}{{ index . 2 }}
namespace: {{ $namespace }}
{{- end }}

{{/* The label `job` that the operator gives to the series of this release; empty if the chart does not create their monitor. */}}
{{- define "scanfeed.job" -}}
{{- if .Values.podMonitor.enabled -}}
{{- $monitor := include "scanfeed.placement" (list . .Values.podMonitor.namespace "") | fromYaml -}}
{{ $monitor.namespace }}/{{ $monitor.name }}
{{- else if .Values.serviceMonitor.enabled -}}
{{ include "scanfeed.fullname" . }}
{{- end }}
{{- end }}

{{/*
Address of the status page; empty if only the cluster can reach it, or if its host begins with a wildcard. Only the Gateway knows
whether it has TLS.
*/}}
{{- define "scanfeed.statusPageUrl" -}}
{{- $ingress := .Values.ingress -}}
{{- $route := .Values.httpRoute -}}
{{- $url := "" -}}
{{- if and $ingress.enabled $ingress.hosts }}
{{- $host := first $ingress.hosts -}}
{{- $path := dig "path" "/" (first (default (list dict) $host.paths)) -}}
{{- $url = printf "%s://%s%s/" (ternary "http" "https" (empty $ingress.tls)) $host.host (trimSuffix "/" $path) -}}
{{- else if and $route.enabled $route.hostnames }}
{{- $url = printf "https://%s%s/" (first $route.hostnames) (trimSuffix "/" $route.path) -}}
{{- end }}
{{- default (ternary "" $url (contains "*" $url)) .Values.dashboard.statusPageUrl }}
{{- end }}

{{/* Address of the runbooks of this version in the repository, as the files of the dashboards contain it. */}}
{{- define "scanfeed.releasedRunbooks" -}}
{{ .Chart.Home }}/blob/v{{ .Chart.AppVersion }}/docs/runbooks
{{- end }}

{{/* Address of the runbooks, without a slash at its end. */}}
{{- define "scanfeed.runbooks" -}}
{{- default (include "scanfeed.releasedRunbooks" .) .Values.prometheusRule.runbookUrl | trimSuffix "/" -}}
{{- end }}

{{/* Labels of every pod of the release, including that of the migration. */}}
{{- define "scanfeed.instanceLabels" -}}
app.kubernetes.io/name: {{ include "scanfeed.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of the daemon's pods only. */}}
{{- define "scanfeed.selectorLabels" -}}
{{ include "scanfeed.instanceLabels" . }}
app.kubernetes.io/component: daemon
{{- end }}

{{- define "scanfeed.labels" -}}
{{ include "scanfeed.labelsWith" (list . (dict)) }}
{{- end }}

{{/* These labels and further ones, which take precedence over the common labels: (list root labels). */}}
{{- define "scanfeed.labelsWith" -}}
{{- $labels := index . 1 -}}
{{- with index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{ include "scanfeed.instanceLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with merge (dict) $labels .Values.commonLabels }}
{{- $further := . }}
{{- range $own := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/managed-by" }}
{{- if hasKey $further $own }}{{ fail (printf "the label %s is the chart's own: leave it out, or set nameOverride" $own) }}{{ end }}
{{- end }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "scanfeed.serviceAccountName" -}}
{{- $default := ternary (include "scanfeed.fullname" .) "default" .Values.serviceAccount.create }}
{{- default $default .Values.serviceAccount.name }}
{{- end }}

{{/* The block `annotations` of an object: (list root annotations…), of which the first ones take precedence. */}}
{{- define "scanfeed.annotations" -}}
{{- $all := dict -}}
{{- range append (rest .) (first .).Values.commonAnnotations }}{{ $all = merge $all (. | default dict) }}{{ end -}}
{{- with $all -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A repository whose first part is a host, by the rule of container engines, is complete. */}}
{{- define "scanfeed.image" -}}
{{- $global := dig "imageRegistry" "" (.Values.global | default dict) -}}
{{- with .Values.image }}
{{- $registry := default .registry $global | trimSuffix "/" -}}
{{- if regexMatch "^([^/]*[.:][^/]*|localhost)/" .repository -}}
{{- if $global }}{{ fail (printf "image.repository: %s names a registry, and global.imageRegistry is %s; name the repository alone" .repository $global) }}{{ end -}}
{{- $registry = "" -}}
{{- end -}}
{{- with $registry }}{{ . }}/{{ end }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}

{{/* Secrets for pulling the image, those of all charts of the release first; each is a name or an object with one. */}}
{{- define "scanfeed.imagePullSecrets" -}}
{{- $names := list -}}
{{- range concat (dig "imagePullSecrets" list (.Values.global | default dict) | default list) .Values.imagePullSecrets }}
{{- $names = append $names (ternary . (get (ternary (dict) . (kindIs "string" .)) "name") (kindIs "string" .)) -}}
{{- end }}
{{- range uniq $names }}
- name: {{ . }}
{{- end }}
{{- end }}
