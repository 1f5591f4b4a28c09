{{- define "diana.filter" -}}
{{- $name := include "diana.filter.name" . -}}
name: {{ $name }}
typed_config:
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
        remote:
          http_uri:
            uri: {{ ternary "http" "https" (empty .Values.companion.tls.secret) }}://{{ include "diana.host" . }}/modules/{{ .Values.filter.sha256 }}.wasm
            cluster: {{ $name }}_companion
            timeout: 30s
          sha256: {{ .Values.filter.sha256 | quote }}
          # Without end: until the module is there, a new listener does not accept connections, and
          # a changed one stays as it is.
          retry_policy:
            num_retries: 4294967295
            retry_back_off: {base_interval: 0.5s, max_interval: 5s}
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
    configuration:
      "@type": type.googleapis.com/google.protobuf.StringValue
      value: |
        {{- include "diana.configuration" . | nindent 8 }}
{{- end }}
