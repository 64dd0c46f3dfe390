{{/* Checks of values that a schema cannot express. Each fails with a message that names the value. */}}
{{- define "scanfeed.checks" -}}
{{- include "scanfeed.checkUrl" (list . "baseUrl" .Values.baseUrl) }}
{{- include "scanfeed.checkFeeds" . }}
{{- include "scanfeed.checkExtraEnv" . }}
{{- include "scanfeed.checkRanges" . }}
{{- include "scanfeed.checkMemory" . }}
{{- include "scanfeed.checkIntervals" . }}
{{- include "scanfeed.checkDatabase" . }}
{{- include "scanfeed.checkUser" . }}
{{- include "scanfeed.checkShutdown" . }}
{{- include "scanfeed.checkAdminHost" . }}
{{- if and .Values.startupProbe (eq .Values.mode "sidecar") }}
{{- fail "startupProbe: that of a sidecar would delay the application" }}
{{- end }}
{{- end }}

{{/* Fails with every required value that is missing. Each of several feeds may have its own address and key. */}}
{{- define "scanfeed.requireValues" -}}
{{- $missing := list -}}
{{- if not (or .Values.baseUrl .Values.feeds) }}
{{- $missing = append $missing "baseUrl is required: the address of the service, with its /v1" }}
{{- end }}
{{- if not (or .Values.apiKey.existingSecret .Values.feeds) }}
{{- $missing = append $missing "apiKey.existingSecret is required: the secret that holds the API key" }}
{{- end }}
{{- if not .Values.database.existingSecret }}
{{- $missing = append $missing "database.existingSecret is required: the secret that holds the database's address" }}
{{- end }}
{{- with $missing }}{{ fail (join "\n" . | print "\n") }}{{ end -}}
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

{{/*
A size in bytes, such as 256Mi of Kubernetes or 64MiB of scanfeed, or a duration in milliseconds, such as 1h30m of Prometheus;
empty if it is none.
*/}}
{{- define "scanfeed.quantity" -}}
{{- $text := ternary . (toJson .) (kindIs "string" .) -}}
{{- $sizes := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $units := merge $sizes (dict "ms" 1 "s" 1e3 "m" 60e3 "h" 3600e3 "d" 86400e3 "w" 604800e3 "y" 31536000e3) -}}
{{- $known := regexMatch "^[0-9]" $text -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+ ?[A-Za-z]*" $text -1 }}
{{- $unit := regexFind "[A-Za-z]*$" . | trimSuffix "B" -}}
{{- $known = and $known (hasKey $units $unit) -}}
{{- $sum = addf $sum (mulf (regexFind "^[0-9.]+" . | float64) (get $units $unit | default 0)) -}}
{{- end -}}
{{- if $known }}{{ printf "%.6f" $sum }}{{ end -}}
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

{{/* With the password alone, the program needs host and role as well. */}}
{{- define "scanfeed.checkDatabase" -}}
{{- $given := keys .Values.settings -}}
{{- range .Values.extraEnv }}{{ $given = append $given .name }}{{ end -}}
{{- range $name := list "PGHOST" "PGUSER" }}
{{- if and $.Values.database.passwordKey (not $.Values.extraEnvFrom) (not (has $name $given)) }}
{{- fail (printf "database.passwordKey: the secret holds only the password; set settings.%s too, or use database.key for a complete address" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The kubelet starts no container of root with runAsNonRoot. The settings of the pod apply where the container has none. */}}
{{- define "scanfeed.checkUser" -}}
{{- $own := .Values.securityContext | default dict -}}
{{- $pod := .Values.podSecurityContext | default dict -}}
{{- $user := get (ternary $own $pod (hasKey $own "runAsUser")) "runAsUser" -}}
{{- $nonRoot := get (ternary $own $pod (hasKey $own "runAsNonRoot")) "runAsNonRoot" -}}
{{- if and $nonRoot (eq (toString $user) "0") }}
{{- fail (printf "%s.runAsUser: Kubernetes does not start root with runAsNonRoot; leave out the user, whose default is 65532, or set runAsNonRoot to false" (ternary "securityContext" "podSecurityContext" (hasKey $own "runAsUser"))) }}
{{- end }}
{{- end }}

{{/* Kubernetes kills the container at the end of the grace period, which includes the pause before SIGTERM. */}}
{{- define "scanfeed.checkShutdown" -}}
{{- $timeout := get .Values.settings "SCANFEED_SHUTDOWN_TIMEOUT" | default "10s" -}}
{{- $pause := dig "preStop" "sleep" "seconds" 0 (.Values.lifecycle | default dict) -}}
{{- $needed := addf $pause (divf (include "scanfeed.quantity" $timeout) 1000) -}}
{{- if and (eq .Values.mode "deployment") (le (float64 .Values.terminationGracePeriodSeconds) $needed) }}
{{- fail (printf "terminationGracePeriodSeconds: %v must be longer than SCANFEED_SHUTDOWN_TIMEOUT, %s, and the pause of lifecycle.preStop, %v s" .Values.terminationGracePeriodSeconds $timeout $pause) }}
{{- end }}
{{- end }}

{{/* Probes and scrapes reach the pod by its address. */}}
{{- define "scanfeed.checkAdminHost" -}}
{{- $host := get .Values.settings "SCANFEED_ADMIN_HOST" | default "" -}}
{{- if regexMatch "^(127\\.|::1$|localhost$)" $host }}
{{- range $name := list "livenessProbe" "readinessProbe" }}
{{- if and (dig "httpGet" "" (get $.Values $name | default dict)) (or (eq $name "livenessProbe") (ne $.Values.mode "sidecar")) }}
{{- fail (printf "settings.SCANFEED_ADMIN_HOST: %s cannot be reached by %s; leave it out, or use a probe of the type exec" $host $name) }}
{{- end }}
{{- end }}
{{- range $name := list "podMonitor" "serviceMonitor" }}
{{- if (get $.Values $name).enabled }}
{{- fail (printf "settings.SCANFEED_ADMIN_HOST: %s cannot be reached by Prometheus; leave it out, or disable %s" $host $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
