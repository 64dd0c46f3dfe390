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
{{- $release := .Release.Name | replace "." "-" }}{{/* a release name may contain dots, a Service name may not */}}
{{- ternary $release (printf "%s-%s" $release $name) (contains $name $release) | trunc 63 | trimSuffix "-" }}
{{- end }}
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

{{- define "scanfeed.image" -}}
{{- with .Values.image }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end }}
{{- end }}
