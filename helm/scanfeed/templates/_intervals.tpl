{{/*
The longest interval that the alerts work with. Prometheus forgets a series five minutes after its last sample, and two failed
scrapes must not fire ScanfeedDown.
*/}}
{{- define "scanfeed.longestInterval" -}}
2m
{{- end }}

{{/* Name of the value with the scrape interval of this release's series. */}}
{{- define "scanfeed.scrapeIntervalName" -}}
{{- if .Values.podMonitor.enabled -}}
podMonitor.interval
{{- else if .Values.serviceMonitor.enabled -}}
serviceMonitor.interval
{{- else -}}
prometheusRule.scrapeInterval
{{- end }}
{{- end }}

{{/* Scrape interval of this release's series. */}}
{{- define "scanfeed.scrapeInterval" -}}
{{- $path := include "scanfeed.scrapeIntervalName" . | splitList "." -}}
{{ get (get .Values (first $path)) (last $path) }}
{{- end }}

{{/*
The range window of an alert, extended to at least 4 scrapes, or to the given number, because some fail: (list root window
scrapes).
*/}}
{{- define "scanfeed.window" -}}
{{- $scrapes := ternary (last .) 4 (eq (len .) 3) -}}
{{- $shortest := mulf $scrapes (include "scanfeed.scrapeInterval" (first .) | include "scanfeed.quantity") -}}
{{- $longer := lt (include "scanfeed.quantity" (index . 1) | float64) $shortest -}}
{{ ternary (include "scanfeed.duration" $shortest) (index . 1) $longer }}
{{- end }}

{{/*
The `for` of an alert that needs only one failure in its window: (list root for window). It grows with the window, so that a
short failure raises no alert.
*/}}
{{- define "scanfeed.forWithWindow" -}}
{{- $given := index . 2 -}}
{{- $window := include "scanfeed.window" (list (first .) $given) -}}
{{- $growth := subf (include "scanfeed.quantity" $window) (include "scanfeed.quantity" $given) -}}
{{- $for := addf (include "scanfeed.quantity" (index . 1)) $growth -}}
{{ ternary (index . 1) (include "scanfeed.duration" $for) (eq $window $given) }}
{{- end }}

{{/* Milliseconds as a duration of Prometheus. */}}
{{- define "scanfeed.duration" -}}
{{- $seconds := divf . 1000 | ceil | int64 -}}
{{ ternary (printf "%dm" (div $seconds 60)) (printf "%ds" $seconds) (eq (mod $seconds 60) 0) }}
{{- end }}

{{- define "scanfeed.checkIntervals" -}}
{{- range $monitor := list "podMonitor" "serviceMonitor" }}
{{- with get $.Values $monitor }}
{{- if and .enabled .scrapeTimeout (gt (include "scanfeed.quantity" .scrapeTimeout | float64) (include "scanfeed.quantity" .interval | float64)) }}
{{- fail (printf "%s.scrapeTimeout: %s is longer than %s.interval, %s; Prometheus rejects that" $monitor .scrapeTimeout $monitor .interval) }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.prometheusRule.enabled }}
{{- $scrape := include "scanfeed.scrapeInterval" . -}}
{{- $longest := include "scanfeed.longestInterval" . -}}
{{- range $name, $interval := dict (include "scanfeed.scrapeIntervalName" .) $scrape "prometheusRule.interval" (default "1m" .Values.prometheusRule.interval) }}
{{- $value := include "scanfeed.quantity" $interval | float64 }}
{{- if or (lt $value 1000.0) (gt $value (include "scanfeed.quantity" $longest | float64)) }}
{{- fail (printf "%s: the alerts need an interval from 1s to %s, not %s; change it, or disable prometheusRule" $name $longest $interval) }}
{{- end }}
{{- end }}
{{- include "scanfeed.checkPollIntervals" . }}
{{- end }}
{{- end }}

{{/* Between two polls, and until the next scrape, a feed looks as if it had stopped. */}}
{{- define "scanfeed.checkPollIntervals" -}}
{{- $common := get .Values.settings "SCANFEED_POLL_INTERVAL" | default "5s" -}}
{{- $scrape := include "scanfeed.scrapeInterval" . -}}
{{- range default (list dict) .Values.feeds }}
{{- $name := ternary (printf "feeds: pollInterval of %s" .name) "settings.SCANFEED_POLL_INTERVAL" (hasKey . "pollInterval") -}}
{{- $poll := default $common .pollInterval -}}
{{- $pause := addf (include "scanfeed.quantity" $poll) (include "scanfeed.quantity" $scrape) -}}
{{- range $path := list "Stalled.threshold" "LagHigh.warning" "NoDeliveries.threshold" }}
{{- $alert := splitList "." $path | first -}}
{{- with get $.Values.prometheusRule.alerts $alert }}
{{- $threshold := splitList "." $path | last | get . }}
{{- if and .enabled (gt $pause (mulf 1000 $threshold)) }}
{{- fail (printf "%s: %s and the scrape interval, %s, are together longer than prometheusRule.alerts.%s, %v s, so Scanfeed%s would fire without a fault; raise that" $name $poll $scrape $path $threshold $alert) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
