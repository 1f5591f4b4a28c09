{{/* The text of the rules, as the companion serves it. */}}
{{- define "diana.document" -}}
{{- range list "namespace" "keys" "log" "accepted" "mark" "explain" "admin" "redis" "remote" }}
{{- if hasKey $.Values.config . }}
{{- fail (printf "config.%s: rules cannot change it; write it under %s" . (ternary "`redis`" "`filter.settings`" (eq . "redis"))) }}
{{- end }}
{{- end }}
{{- if and .Values.config (not (hasKey .Values.config "limits")) }}
{{- fail "config.limits is missing: a list of `{Url, rules}`; `[]` for no limits" }}
{{- end }}
{{- if eq (empty .Values.config) (empty .Values.rulesText) }}
{{- fail "write your rules under `config`, or give them by --set-file rulesText=FILE: one of both" }}
{{- end }}
{{- $text := .Values.rulesText }}
{{- if empty $text }}{{ $text = toYaml .Values.config }}{{ end }}
{{- regexReplaceAll "\\s+$" ($text | replace "\r\n" "\n") "" }}
{{ end }}

{{/* The configuration of the filter: where the rules are, and what they cannot change. */}}
{{- define "diana.configuration" -}}
{{- $own := deepCopy .Values.filter.settings }}
{{- $cluster := include "diana.filter.name" . }}
{{- if eq .Values.filter.before "release" }}
{{- $document := include "diana.document" . | fromYaml }}
{{- if not (hasKey $document "limits") }}
{{- fail "filter.before: `release` needs rules that are a mapping with `limits`" }}
{{- end }}
{{- $own = merge $own $document }}
{{- else if eq .Values.filter.before "closed" }}
{{- $rule := dict "name" "before-first-document" "actor" "all" "unit" "second" "rpu" 0 }}
{{- $_ := set $own "limits" (list (dict "Url" "/" "rules" (list $rule))) }}
{{- else }}
{{- $_ := set $own "limits" list }}
{{- end }}
{{- $_ := set $own "remote" (dict "cluster" (printf "%s_companion" $cluster) "path" "/rules.yaml" "every" "1s" "timeout" "1s") }}
{{- with include "diana.redis.settings" . | fromYaml }}{{ $_ := set $own "redis" . }}{{ end }}
{{- toYaml $own }}
{{ end }}

{{/* Its key `redis`; empty without Redis. */}}
{{- define "diana.redis.settings" -}}
{{- $cluster := include "diana.filter.name" . }}
{{- with .Values.redis }}
{{- if .enabled }}
{{- $place := ternary (dict "cluster" (printf "%s_redis" $cluster)) (dict "pipe" (include "diana.socket" $)) (empty (include "diana.native" $)) }}
{{- $redis := merge $place .settings }}
{{- if include "diana.proxied" $ }}
{{- $_ := set $redis "proxied" true }}
{{- else }}
{{- if .username }}{{ $_ := set $redis "username_env" "DIANA_REDIS_USERNAME" }}{{ end }}
{{- if .passwordEnv }}{{ $_ := set $redis "password_env" .passwordEnv }}{{ end }}
{{- end }}
{{- toYaml $redis }}
{{- end }}
{{- end }}
{{- end }}

{{/* Not empty if Redis is reached through Envoy's proxy of Redis. */}}
{{- define "diana.proxied" -}}
{{- with .Values.redis }}
{{- $default := eq $.Values.controlPlane "istio" }}
{{- $proxied := kindIs "invalid" .proxied | ternary $default .proxied }}
{{- if and .enabled .cluster (not $proxied) }}
{{- fail "redis.cluster: set `redis.proxied: true`, since only Envoy's own proxy of Redis reaches all nodes of a Redis Cluster" }}
{{- end }}
{{- if and .enabled $proxied }}true{{ end }}
{{- end }}
{{- end }}

{{/* The variables that the filter reads in the environment of the proxies. */}}
{{- define "diana.variables" -}}
{{- $names := .Values.filter.env }}
{{- with .Values.redis }}
{{- if .enabled }}
{{- $names = append $names .passwordEnv }}
{{- if and .username (include "diana.native" $) (not (include "diana.proxied" $)) }}{{ $names = append $names "DIANA_REDIS_USERNAME" }}{{ end }}
{{- end }}
{{- end }}
{{- $names | compact | uniq | toJson }}
{{- end }}
