{{- define "diana.filter" -}}
name: {{ include "diana.filter.name" . }}
typed_config: {{ include (ternary "diana.filter.wasm" "diana.filter.native" (empty (include "diana.native" .))) . | nindent 2 }}
{{- end }}

{{/* An empty filter in front of Diana's. Its metrics show which connection managers have Diana: they have their prefix, and Envoy's other
     metrics of modules have not. Proxies of Istio report those whose names end so. It also makes Envoy select the route of headers that
     filters before it have changed, for rules by `route`. */}}
{{- define "diana.presence" -}}
name: {{ include "diana.filter.name" . }}_presence
typed_config:
  "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC
  rules_stat_prefix: {{ include "diana.presence.name" . }}_
  shadow_rules_stat_prefix: {{ include "diana.presence.name" . }}_
{{- end }}

{{- define "diana.presence.name" -}}
diana_{{ regexReplaceAll "[^A-Za-z0-9_]" (include "diana.namespace" .) "_" }}
{{- end }}

{{/* Regular expressions for the metrics' prefixes of connection managers: of those that can have Diana, and of those of `without`. */}}
{{- define "diana.managers" -}}
{{- if eq .Values.controlPlane "envoy-gateway" -}}
https?-[0-9]+
{{- else -}}
{{ ternary "out" "in" (eq .Values.istio.context "GATEWAY") }}bound_[^";]+
{{- end }}
{{- end }}

{{- define "diana.managers.without" -}}
{{- $ports := list }}
{{- if eq .Values.controlPlane "envoy-gateway" }}
{{- range .Values.envoyGateway.gateways }}
{{- range .without }}{{ $ports = concat $ports (list . (add . 10000)) }}{{ end }}
{{- end }}
{{- end }}
{{- printf "https?-(%s)" (join "|" $ports) }}
{{- end }}

{{/* Not empty if the filter is the library in Envoy's own process. */}}
{{- define "diana.native" -}}
{{- with .Values.filter.native }}{{ if or .sha256 .file }}true{{ end }}{{ end }}
{{- end }}

{{- define "diana.filter.wasm" -}}
{{- $name := include "diana.filter.name" . -}}
"@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm
config:
  name: {{ $name }}
  root_id: {{ include "diana.id" . }}
  failure_policy: FAIL_RELOAD
  reload_config: {backoff: {base_interval: 0.1s}}
  vm_config:
    vm_id: {{ $name }}
    runtime: envoy.wasm.runtime.v8
    # Envoy looks for a VM before it fetches the code, by the identity and this text. Without the
    # digest a new module would not replace the old one.
    configuration:
      "@type": type.googleapis.com/google.protobuf.StringValue
      value: {{ .Values.filter.sha256 | quote }}
    code:
      remote: {{ include "diana.remote" (list . .Values.filter.sha256 "wasm") | nindent 8 }}
    environment_variables:
      {{- $direct := and .Values.redis.enabled (not (include "diana.proxied" .)) }}
      {{- with concat .Values.filter.env (ternary (list .Values.redis.passwordEnv) list $direct) | uniq | compact }}
      host_env_keys: {{ toJson . }}
      {{- end }}
      key_values:
        DIANA_WITHOUT_DOCUMENT: admit
        {{- if and $direct .Values.redis.username }}
        DIANA_REDIS_USERNAME: {{ .Values.redis.username | quote }}
        {{- end }}
  configuration: {{ include "diana.filter.configuration" . | nindent 4 }}
{{- end }}

{{- define "diana.filter.native" -}}
{{- $native := .Values.filter.native -}}
{{- if and $native.sha256 $native.file }}
{{- fail "filter.native: set `sha256`, for the library from the companion, or `file`, for one in the proxies' containers" }}
{{- end }}
{{- if and $native.sha256 (eq .Values.controlPlane "istio") }}
{{- fail "filter.native.sha256: Istio's proxies cannot write the library into their file system, and would run without limits; mount it, and set `filter.native.file`" }}
{{- end -}}
"@type": type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter
dynamic_module_config:
  # Its threads run until the process ends.
  do_not_close: true
  # Istio's proxies have no other metrics than those whose names start with some words.
  metrics_namespace: {{ ternary "wasmcustom_diana" "diana" (eq .Values.controlPlane "istio") }}
  module:
    {{- if $native.file }}
    local: {filename: {{ $native.file | quote }}}
    {{- else }}
    remote: {{ include "diana.remote" (list . $native.sha256 "so") | nindent 6 }}
    {{- end }}
filter_name: {{ include "diana.id" . }}
filter_config: {{ include "diana.filter.configuration" . | nindent 2 }}
{{- end }}

{{/* Where a module is: at the companion, by its digest and the end of its name. */}}
{{- define "diana.remote" -}}
{{- $ := index . 0 }}{{ $sha256 := index . 1 }}
{{- if empty $sha256 }}
{{- fail "filter.sha256 is empty: the SHA-256 of the module, which `make image` prints" }}
{{- end -}}
http_uri:
  uri: {{ ternary "http" "https" (empty $.Values.companion.tls.secret) }}://{{ include "diana.host" $ }}/modules/{{ $sha256 }}.{{ index . 2 }}
  cluster: {{ include "diana.filter.name" $ }}_companion
  timeout: 30s
sha256: {{ $sha256 | quote }}
# Without end: until the module is there, a new listener does not accept connections, and a changed
# one stays as it is.
retry_policy:
  num_retries: 4294967295
  retry_back_off: {base_interval: 0.5s, max_interval: 5s}
{{- end }}

{{- define "diana.filter.configuration" -}}
"@type": type.googleapis.com/google.protobuf.StringValue
value: |
  {{- include "diana.configuration" . | nindent 2 }}
{{- end }}
