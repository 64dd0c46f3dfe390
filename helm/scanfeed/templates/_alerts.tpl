{{/* The labels of an alert: (list root severity). */}}
{{- define "scanfeed.alertLabels" -}}
severity: {{ index . 1 }}
{{- $root := index . 0 -}}
{{- /* Alerts of two releases that count the events of all their feeds together differ only in this label. */}}
{{- $job := ternary (dict) (dict "job" (include "scanfeed.job" $root)) (not (empty $root.Values.prometheusRule.selector)) -}}
{{- with merge (dict) $root.Values.prometheusRule.alertLabels $job }}
{{- if hasKey . "severity" }}
{{- fail "prometheusRule.alertLabels: the label severity is set by the severity of each alert in prometheusRule.alerts" }}
{{- end }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Number of events: (list metric selector labels window). `increase` misses what a process counted before its first scrape,
so a new series counts with its whole value.
*/}}
{{- define "scanfeed.happened" -}}
{{- $series := printf "%s{%s}" (index . 0) (index . 1) -}}
{{- $window := index . 3 -}}
sum by ({{ index . 2 }}) (increase({{ $series }}[{{ $window }}])) > 0
or
sum by ({{ index . 2 }}) ({{ $series }} unless count_over_time({{ $series }}[{{ $window }}] offset {{ $window }})) > 0
{{- end }}

{{/*
Names the feed of an alert; the argument replaces "the feed" where counters have no label `feed`, because they are of a process
with several feeds.
*/}}
{{- define "scanfeed.alertFeed" -}}
{{ printf "{{ with $labels.feed }}the feed {{ . }}{{ else }}%s{{ end }}" . }}
{{- end }}

{{/*
All alerts as a rule group of Prometheus. Every replica reports the state that it last read from the database, so ages use
the lowest value, backlogs the highest, and events the sum.
*/}}
{{- define "scanfeed.alerts" -}}
{{- $alerts := .Values.prometheusRule.alerts -}}
{{- $runbooks := include "scanfeed.runbooks" . -}}
{{- $feed := ternary "" (printf ", feed=%q" .Values.feed) (not (empty .Values.feeds)) -}}
{{- /* Labels that counters and gauges have in common: with several feeds, counters have no label `feed`. */}}
{{- $process := ternary "namespace, feed" "namespace" (empty .Values.feeds) -}}
{{- $job := include "scanfeed.job" . -}}
{{- if not (or $job .Values.prometheusRule.selector) }}
{{- fail "prometheusRule.selector: set the labels of the series of this release, such as job=\"scanfeed\"; the chart knows them only if podMonitor or serviceMonitor is enabled" }}
{{- end }}
{{- $release := printf "namespace=%q, job=%q%s" (include "scanfeed.namespace" .) $job $feed -}}
{{- $own := default $release .Values.prometheusRule.selector -}}
- name: scanfeed
  {{- with .Values.prometheusRule.interval }}
  interval: {{ . }}
  {{- end }}
  rules:
    {{- with $alerts.Down }}
    {{- if .enabled }}
    - alert: ScanfeedDown
      # A crash loop is not always absent, so restarts count as well.
      expr: |-
        absent(scanfeed_build_info{ {{- $own -}} })
        or max by (namespace, job, feed) (changes(process_start_time_seconds{ {{- $own -}} }[{{ include "scanfeed.window" (list $ .window (add .restarts 4)) }}])) > {{ .restarts }}
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: scanfeed is not running, or keeps restarting
        description: >-
          Prometheus finds no scanfeed process for {{ include "scanfeed.alertFeed" "any feed" }}, or the
          process keeps restarting: it is not running, it crashes, or Prometheus cannot reach it.
        runbook_url: {{ $runbooks }}/ScanfeedDown.md
    {{- end }}
    {{- end }}
    {{- with $alerts.Stalled }}
    {{- if .enabled }}
    - alert: ScanfeedStalled
      expr: |-
        time() - max by (namespace, feed) (scanfeed_last_poll_success_timestamp_seconds{ {{- $own -}} }) > {{ .threshold }}
        unless on (namespace, feed)
          max by (namespace, feed) (max_over_time(scanfeed_failing{ {{- $own -}} , stage=~"feed|lease"}[{{ include "scanfeed.window" (list $ .window) }}])) == 1
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: The feed is not being polled, and no failure explains it
        description: >-
          {{`{{ if gt $value 1e9 }}No poll of the feed {{ $labels.feed }} has succeeded yet{{ else }}The last successful poll of the feed {{ $labels.feed }} was {{ $value | humanizeDuration }} ago{{ end }}`}},
          and no failure is being retried: the sync loop hangs, or another process leads the feed and does nothing.
        runbook_url: {{ $runbooks }}/ScanfeedStalled.md
    {{- end }}
    {{- end }}
    {{- with $alerts.LagHigh }}
    {{- if .enabled }}
    {{- range $severity := list "warning" "critical" }}
    {{- $threshold := index $alerts.LagHigh $severity }}
    - alert: ScanfeedLagHigh
      # During the initial sync the age of the history does not count as lag.
      expr: |-
        min by (namespace, feed) (scanfeed_lag_seconds{ {{- $own -}} }) > {{ $threshold }}
        unless on (namespace, feed) (
          max by (namespace, feed) (scanfeed_initial_sync_complete{ {{- $own -}} }) == 0
          and time() - max by (namespace, feed) (scanfeed_last_poll_success_timestamp_seconds{ {{- $own -}} }) < {{ $alerts.LagHigh.warning }}
        )
      for: {{ $alerts.LagHigh.for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ $severity) | nindent 8 }}
      annotations:
        summary: The stored data is old
        description: >-
          Entries that the feed {{`{{ $labels.feed }}`}} delivered {{`{{ if gt $value 1e9 }}so far{{ else }}in the last {{ $value | humanizeDuration }}{{ end }}`}}
          may be missing from the database. Reports show an older state.
        runbook_url: {{ $runbooks }}/ScanfeedLagHigh.md
    {{- end }}
    {{- end }}
    {{- end }}
    {{- with $alerts.ErrorRatioHigh }}
    {{- if .enabled }}
    {{- $window := include "scanfeed.window" (list $ .window) }}
    - alert: ScanfeedErrorRatioHigh
      expr: |-
        sum by (namespace, feed) (rate(scanfeed_polls_total{ {{- $own -}} , outcome="failed"}[{{ $window }}]))
        / sum by (namespace, feed) (rate(scanfeed_polls_total{ {{- $own -}} }[{{ $window }}]))
        > {{ .threshold }}
        or max by ({{ $process }}) (scanfeed_failing{ {{- $own -}} , stage="feed"}) == 1
          unless on ({{ $process }}) sum by ({{ $process }}) (rate(scanfeed_polls_total{ {{- $own -}} }[{{ $window }}])) > 0
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: Many polls fail
        description: >-
          {{`{{ $value | humanizePercentage }}`}} of the polls of {{ include "scanfeed.alertFeed" "all feeds" }} failed in the last {{ $window }}.
        runbook_url: {{ $runbooks }}/ScanfeedErrorRatioHigh.md
    {{- end }}
    {{- end }}
    {{- with $alerts.AuthenticationFailing }}
    {{- if .enabled }}
    - alert: ScanfeedAuthenticationFailing
      expr: |-
        max by (namespace, feed, kind) (
          max_over_time(scanfeed_failing{ {{- $own -}} , kind=~"http_401|http_403|another_organization"}[{{ include "scanfeed.window" (list $ .window) }}])
        ) == 1
      for: {{ include "scanfeed.forWithWindow" (list $ .for .window) }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: The API key is not accepted
        description: >-
          The API key of the feed {{`{{ $labels.feed }}`}} is refused by the service, or belongs to another organization
          ({{`{{ $labels.kind }}`}}). The feed is held. This needs action.
        runbook_url: {{ $runbooks }}/ScanfeedAuthenticationFailing.md
    {{- end }}
    {{- end }}
    {{- with $alerts.CursorReset }}
    {{- if .enabled }}
    - alert: ScanfeedCursorReset
      expr: |-
        {{- include "scanfeed.happened" (list "scanfeed_cursor_resets_total" $own "namespace, feed" (include "scanfeed.window" (list $ .window))) | nindent 8 }}
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: The service rejected the cursor
        description: >-
          The service rejected the cursor of {{ include "scanfeed.alertFeed" "a feed" }}, which
          resumed from an earlier position. Entries that are delivered again change nothing.
        runbook_url: {{ $runbooks }}/ScanfeedCursorReset.md
    {{- end }}
    {{- end }}
    {{- with $alerts.EntriesQuarantined }}
    {{- if .enabled }}
    - alert: ScanfeedEntriesQuarantined
      expr: max by (namespace, feed) (scanfeed_quarantined_entries{ {{- $own -}} }) > {{ .threshold }}
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: Entries of the feed could not be stored
        description: >-
          {{`{{ $value }}`}} entries of the feed {{`{{ $labels.feed }}`}} are in quarantine: reports lack them until they are settled.
        runbook_url: {{ $runbooks }}/ScanfeedEntriesQuarantined.md
    {{- end }}
    {{- end }}
    {{- with $alerts.ResultsPending }}
    {{- if .enabled }}
    - alert: ScanfeedResultsPending
      expr: max by (namespace, feed) (scanfeed_pending_results{ {{- $own -}} }) > {{ .threshold }}
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: Full results could not be loaded
        description: >-
          {{`{{ $value }}`}} runs of the feed {{`{{ $labels.feed }}`}} are stored without their result, which was too large for the feed
          and could not be loaded yet.
        runbook_url: {{ $runbooks }}/ScanfeedResultsPending.md
    {{- end }}
    {{- end }}
    {{- with $alerts.NoDeliveries }}
    {{- if .enabled }}
    - alert: ScanfeedNoDeliveries
      expr: time() - max by (namespace, feed) (scanfeed_last_delivery_timestamp_seconds{ {{- $own -}} } > 0) > {{ .threshold }}
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: The feed lists nothing new
        description: >-
          The last delivery of the feed {{`{{ $labels.feed }}`}} was {{`{{ $value | humanizeDuration }}`}} ago. Polls succeed, so
          either nothing was submitted, or the service or its filters leave runs out.
        runbook_url: {{ $runbooks }}/ScanfeedNoDeliveries.md
    {{- end }}
    {{- end }}
    {{- with $alerts.ReconcileFoundRuns }}
    {{- if .enabled }}
    - alert: ScanfeedReconcileFoundRuns
      expr: |-
        {{- include "scanfeed.happened" (list "scanfeed_reconcile_found_total" $own "namespace, feed, revision" (include "scanfeed.window" (list $ .window))) | nindent 8 }}
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: A recent or full pass found runs that the cursor skipped
        description: >-
          Reconciliation stored runs of {{ include "scanfeed.alertFeed" "a feed" }} that the
          cursor had skipped (revision: {{`{{ $labels.revision }}`}}). They are stored now, but late.
        runbook_url: {{ $runbooks }}/ScanfeedReconcileFoundRuns.md
    {{- end }}
    {{- end }}
    {{- with $alerts.DatabaseUnavailable }}
    {{- if .enabled }}
    - alert: ScanfeedDatabaseUnavailable
      expr: |-
        max by ({{ $process }}, kind) (
          max_over_time(scanfeed_failing{ {{- $own -}} , stage="lease", kind!~"another_service|another_organization|processes_elsewhere"}[{{ include "scanfeed.window" (list $ .window) }}])
        ) == 1
        unless on ({{ $process }}) max by ({{ $process }}) (scanfeed_leader{ {{- $own -}} }) == 1
      for: {{ include "scanfeed.forWithWindow" (list $ .for .window) }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: The database is unavailable or refuses access
        description: >-
          No replica can lead {{ include "scanfeed.alertFeed" "any feed" }} in the
          database ({{`{{ $labels.kind }}`}}). Nothing is being stored.
        runbook_url: {{ $runbooks }}/ScanfeedDatabaseUnavailable.md
    {{- end }}
    {{- end }}
    {{- with $alerts.FeedsInvalid }}
    {{- if and .enabled $.Values.feeds }}
    - alert: ScanfeedFeedsInvalid
      expr: max by (namespace) (scanfeed_feeds{ {{- $own -}} , state="invalid"}) > 0
      for: {{ .for }}
      labels:
        {{- include "scanfeed.alertLabels" (list $ .severity) | nindent 8 }}
      annotations:
        summary: Entries of the feeds file are invalid
        description: >-
          {{`{{ $value }}`}} entries of the feeds file are invalid: their feeds keep running with their last valid
          entries, or do not start.
        runbook_url: {{ $runbooks }}/ScanfeedFeedsInvalid.md
    {{- end }}
    {{- end }}
{{- end }}
