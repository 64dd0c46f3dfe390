{{- define "scanfeed.name" -}}
{{- default "scanfeed" .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Of the container's port: 15 characters at most. */}}
{{- define "scanfeed.portName" -}}
{{- include "scanfeed.name" . | trunc 15 | trimSuffix "-" }}
{{- end }}

{{- define "scanfeed.fullname" -}}
{{- $name := include "scanfeed.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $release := .Release.Name | replace "." "-" }}{{/* which a release may have, and a Service may not */}}
{{- ternary $release (printf "%s-%s" $release $name) (contains $name $release) | trunc 63 | trimSuffix "-" }}
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
{{ include "scanfeed.labelsWith" (list . (dict)) }}
{{- end }}

{{/* Those and further ones, which go before the common ones: (list root labels). */}}
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
