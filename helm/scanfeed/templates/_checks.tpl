{{/* Checks of values that a schema cannot express. Each fails with a message that names the value. */}}
{{- define "scanfeed.checks" -}}
{{- include "scanfeed.checkUrl" (list . "baseUrl" .Values.baseUrl) }}
{{- include "scanfeed.checkFeeds" . }}
{{- include "scanfeed.checkExtraEnv" . }}
{{- include "scanfeed.checkRanges" . }}
{{- include "scanfeed.checkMemory" . }}
{{- if and .Values.startupProbe (eq .Values.mode "sidecar") }}
{{- fail "startupProbe: that of a sidecar would delay the application" }}
{{- end }}
{{- end }}

{{/* Values that set a variable, by the variable's name without _FILE. */}}
{{- define "scanfeed.ownValues" -}}
SCANFEED_BASE_URL: baseUrl
SCANFEED_API_KEY: apiKey.existingSecret
SCANFEED_FEED: feed
SCANFEED_FEEDS_FILE: feeds
SCANFEED_ADMIN_PORT: port
SCANFEED_DATABASE_POOL: database.connections
SCANFEED_AUTO_MIGRATE: database.migrations
SCANFEED_MIGRATION_DATABASE_URL: database.migrationSecret
DATABASE_URL: database.existingSecret
PGPASSWORD: database.passwordKey
HTTPS_PROXY: proxy.existingSecret
NO_PROXY: proxy.noProxy
NODE_EXTRA_CA_CERTS: ca
{{- end }}

{{/*
Rejects variables in `extraEnv` that the chart sets. The program accepts a secret or its file, not both, and Kubernetes
uses the last of two equal names.
*/}}
{{- define "scanfeed.checkExtraEnv" -}}
{{- $own := include "scanfeed.ownValues" . | fromYaml -}}
{{- with .Values }}
{{- if not (or .proxy.existingSecret .proxy.url) }}{{ $_ := unset $own "HTTPS_PROXY" }}{{ end -}}
{{- if not .feeds }}{{ $_ := unset $own "SCANFEED_FEEDS_FILE" }}{{ end -}}
{{- if not .proxy.noProxy }}{{ $_ := unset $own "NO_PROXY" }}{{ end -}}
{{- if not (or .ca.configMap .ca.secret) }}{{ $_ := unset $own "NODE_EXTRA_CA_CERTS" }}{{ end -}}
{{- if or .database.ca.configMap .database.ca.secret }}
{{- $_ := merge $own (dict "PGSSLROOTCERT" "database.ca" "PGSSLMODE" "settings.PGSSLMODE") }}
{{- end }}
{{- range $name, $_ := .settings }}{{ $_ := set $own $name (print "settings." $name) }}{{ end -}}
{{- range .extraEnv }}
{{- $value := get $own (trimSuffix "_FILE" .name) }}
{{- if $value }}{{ fail (printf "extraEnv: %s is set by the value %s" .name $value) }}{{ end -}}
{{- end }}
{{- end }}
{{- end }}

{{/* A size in bytes, such as 256Mi of Kubernetes or 64MiB of scanfeed, or a duration in milliseconds; empty if it is none. */}}
{{- define "scanfeed.quantity" -}}
{{- $text := ternary . (toJson .) (kindIs "string" .) -}}
{{- $parts := regexFindAll "^[0-9.]+|[A-Za-z]+$" $text -1 -}}
{{- $sizes := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $units := merge $sizes (dict "ms" 1 "s" 1e3 "m" 60e3 "h" 3600e3 "d" 86400e3) -}}
{{- $unit := "" -}}
{{- if gt (len $parts) 1 }}{{ $unit = index $parts 1 | trimSuffix "B" }}{{ end -}}
{{- if and (regexMatch "^[0-9]" $text) (hasKey $units $unit) -}}
{{ mulf (index $parts 0 | float64) (get $units $unit) | printf "%.6f" }}
{{- end -}}
{{- end }}

{{/* Durations, sizes and numbers in quotes, whose range the schema cannot express. */}}
{{- define "scanfeed.checkRanges" -}}
{{- range $name, $range := include "scanfeed.ranges" . | fromYaml }}
{{- $given := get $.Values.settings $name }}
{{- $value := include "scanfeed.quantity" $given }}
{{- if $value }}
{{- $least := include "scanfeed.quantity" (first $range) | float64 }}
{{- $most := include "scanfeed.quantity" (last $range) | float64 }}
{{- if or (lt (float64 $value) $least) (gt (float64 $value) $most) }}
{{- fail (printf "settings.%s: %s is not in the range from %s to %s" $name $given (first $range) (last $range)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Half of the limit is the heap, so each byte of the memory budget needs two (docs/deployment.md). */}}
{{- define "scanfeed.checkMemory" -}}
{{- $resources := .Values.resources | default dict -}}
{{- $given := dig "limits" "memory" "" $resources -}}
{{- $limit := include "scanfeed.quantity" $given -}}
{{- $budget := get .Values.settings "SCANFEED_MEMORY_BUDGET" | default "64MiB" -}}
{{- $neededMi := addf 128 (divf (mulf 2 (include "scanfeed.quantity" $budget | float64)) 1048576) | ceil -}}
{{- if and $limit (lt (float64 $limit) (mulf $neededMi 1048576)) }}
{{- fail (printf "resources.limits.memory: %s is too small; with SCANFEED_MEMORY_BUDGET %s at least %.0fMi are needed" (toJson $given | trimAll "\"") $budget $neededMi) }}
{{- end }}
{{- $requested := include "scanfeed.quantity" (dig "requests" "memory" "" $resources) -}}
{{- if and $limit $requested (gt (float64 $requested) (float64 $limit)) }}
{{- fail (printf "resources.requests.memory: %s is more than resources.limits.memory, %s" (toJson $resources.requests.memory | trimAll "\"") (toJson $given | trimAll "\"")) }}
{{- end }}
{{- end }}

{{/* The program rejects plain HTTP to another host unless it is allowed: (list root value URL). */}}
{{- define "scanfeed.checkUrl" -}}
{{- $url := index . 2 -}}
{{- $values := (index . 0).Values -}}
{{- $allowed := toString (get $values.settings "SCANFEED_ALLOW_HTTP") -}}
{{- $elsewhere := or $values.extraEnv $values.extraEnvFrom -}}
{{- $loopback := regexMatch "^http://(([^/]*\\.)?localhost|127(\\.[0-9]+){3}|\\[::1\\])(:[0-9]+)?(/|$)" $url -}}
{{- if and (hasPrefix "http:" $url) (not $loopback) (not $elsewhere) (not (has $allowed (list "true" "yes" "on" "1"))) }}
{{- fail (printf "%s: http: is not encrypted; use https:, or set settings.SCANFEED_ALLOW_HTTP" (index . 1)) }}
{{- end }}
{{- end }}
