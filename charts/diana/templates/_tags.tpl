{{/* Makes diana_rule_refused{namespace="…",rule="…"} of a metric's name. */}}
{{- define "diana.tags" -}}
stats_config:
  stats_tags:
  - { tag_name: namespace, regex: '^wasmcustom\.diana\.(([^.]+)\.)' }
  - { tag_name: rule, regex: '^wasmcustom\.diana\.[^.]+\.rule\.(([^.]+)\.)' }
{{- end }}
