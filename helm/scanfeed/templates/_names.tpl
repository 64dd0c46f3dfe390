{{- define "scanfeed.name" -}}
{{- default "scanfeed" .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "scanfeed.fullname" -}}
{{- $name := include "scanfeed.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Of every pod of the release, the migration's included. */}}
{{- define "scanfeed.instanceLabels" -}}
app.kubernetes.io/name: {{ include "scanfeed.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of the daemon's pods alone. */}}
{{- define "scanfeed.selectorLabels" -}}
{{ include "scanfeed.instanceLabels" . }}
app.kubernetes.io/component: daemon
{{- end }}

{{- define "scanfeed.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{ include "scanfeed.instanceLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
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
