{{/* The endpoint of a monitor: (list root value port). */}}
{{- define "scanfeed.endpoint" -}}
{{- $value := index . 1 -}}
{{- $port := index . 2 -}}
{{- with get (index . 0).Values $value -}}
port: {{ $port }}
interval: {{ .interval }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- if .honorLabels }}
honorLabels: true
{{- end }}
{{- if eq .scheme "https" }}
scheme: https
{{- with .tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- else if .tlsConfig }}
{{- fail (printf "%s.tlsConfig: it has no effect unless %s.scheme is https" $value $value) }}
{{- end }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
