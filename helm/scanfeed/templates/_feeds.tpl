{{/* The feeds file: the entries, with the paths of their keys in place of the secrets. */}}
{{- define "scanfeed.feedsFile" -}}
{{- $entries := list -}}
{{- range .Values.feeds }}
{{- $entry := omit . "apiKey" -}}
{{- with .apiKey }}{{ $_ := set $entry "apiKeyFile" (printf "/etc/scanfeed-keys/%s/%s" .existingSecret .key) }}{{ end -}}
{{- $entries = append $entries $entry -}}
{{- end -}}
{{ toYaml $entries }}
{{- end }}

{{/* A ConfigMap of the feeds file: (list root name annotations…). It is mounted as a directory, so changes need no restart. */}}
{{- define "scanfeed.feedsConfigMap" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ index . 1 }}
  namespace: {{ include "scanfeed.namespace" $root }}
  labels:
    {{- include "scanfeed.labels" $root | nindent 4 }}
  {{- with include "scanfeed.annotations" (prepend (slice . 2) $root) }}
  {{- . | nindent 2 }}
  {{- end }}
data:
  feeds.yaml: |
    {{- include "scanfeed.feedsFile" $root | nindent 4 }}
{{- end }}

{{/*
Names of the secrets with keys of feeds, as JSON. Each is mounted with all of its keys, so that a feed whose key is in one of
them is added without a restart.
*/}}
{{- define "scanfeed.keySecrets" -}}
{{- $names := list -}}
{{- range .Values.feeds }}
{{- with .apiKey }}{{ $names = append $names .existingSecret }}{{ end -}}
{{- end -}}
{{ dict "names" ($names | uniq | sortAlpha) | toJson }}
{{- end }}

{{- define "scanfeed.keyVolumeName" -}}
{{ include "scanfeed.name" (index . 0) | trunc 50 | trimSuffix "-" }}-keys-{{ index . 1 }}
{{- end }}

{{/* Each feed needs an address and a key, its own or those of all feeds. */}}
{{- define "scanfeed.checkFeeds" -}}
{{- $names := dict -}}
{{- range .Values.feeds }}
{{- if hasKey $names .name }}{{ fail (printf "feeds: two have the name %s" .name) }}{{ end -}}
{{- $_ := set $names .name true -}}
{{- if not (or .baseUrl $.Values.baseUrl) }}{{ fail (printf "feeds: %s has no baseUrl, and there is none for all feeds" .name) }}{{ end -}}
{{- if not (or .apiKey $.Values.apiKey.existingSecret) }}{{ fail (printf "feeds: %s has no apiKey, and there is no apiKey.existingSecret for all feeds" .name) }}{{ end -}}
{{- include "scanfeed.checkUrl" (list $ (printf "feeds: baseUrl of %s" .name) (default "" .baseUrl)) -}}
{{- end }}
{{- end }}
