{{/*
A dashboard of this release: (list root file uid changes). The uid is that of the feed's dashboard, which others link to; the
changes are uid, title, and the values of variables to begin with.
*/}}
{{- define "scanfeed.dashboard" -}}
{{- $root := index . 0 -}}
{{- $changes := index . 3 -}}
{{- $runbooks := include "scanfeed.runbooks" $root -}}
{{- $text := $root.Files.Get (printf "dashboards/%s" (index . 1)) | replace (include "scanfeed.releasedRunbooks" $root) $runbooks -}}
{{- $dashboard := $text | replace "/d/scanfeed?" (printf "/d/%s?" (index . 2)) | fromJson -}}
{{- $dashboard = mergeOverwrite $dashboard (pick $changes "uid" "title") -}}
{{- range $dashboard.templating.list }}
{{- $value := get $changes .name }}
{{- if $value }}{{ $_ := set . "current" (dict "text" $value "value" $value) }}{{ end -}}
{{- end }}
{{- with include "scanfeed.statusPageUrl" $root }}
{{- $link := dict "title" "Status page" "type" "link" "url" . "targetBlank" true "icon" "info" "tags" list "asDropdown" false "includeVars" false "keepTime" false "tooltip" "" }}
{{- $_ := set $dashboard "links" (append $dashboard.links $link) }}
{{- end }}
{{- toPrettyJson $dashboard }}
{{- end }}
