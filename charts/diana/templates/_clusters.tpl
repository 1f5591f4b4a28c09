{{/* The clusters that Diana calls: of the companion, and of Redis, which envoy/fleet.yaml and envoy/redis/cluster.yaml explain. */}}
{{- define "diana.clusters" -}}
{{- $name := include "diana.filter.name" . }}
{{- $native := include "diana.native" . }}
clusters:
- name: {{ $name }}_companion
  type: STRICT_DNS
  connect_timeout: 0.5s
  {{- with .Values.companion }}
  load_assignment: {{ include "diana.endpoint" (list (printf "%s_companion" $name) (printf "%s.%s." (include "diana.host" $) .clusterDomain) .port) }}
  {{- if .tls.secret }}
  transport_socket: {{ include "diana.tls" (dict "name" (include "diana.host" $) "ca" .tls.ca) | nindent 4 }}
  {{- end }}
  {{- end }}
{{- with .Values.redis }}
{{- if .enabled }}
{{- if include "diana.proxied" $ }}
{{- if not $native }}
- name: {{ $name }}_redis
  load_assignment:
    cluster_name: {{ $name }}_redis
    endpoints: [ { lb_endpoints: [ { endpoint: { address: { envoy_internal_address: { server_listener_name: {{ $name }}_redis } } } } ] } ]
  typed_extension_protocol_options:
    envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
      explicit_http_config: { http_protocol_options: {} }
      http_filters:
      - name: envoy.filters.http.header_mutation
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
          mutations: { request_mutations: [ { append: { header: { key: content-length, value: "1000000000" }, append_action: OVERWRITE_IF_EXISTS_OR_ADD } } ] }
      - name: envoy.filters.http.upstream_codec
        typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec }
- name: {{ $name }}_redis_proxy
  load_assignment:
    cluster_name: {{ $name }}_redis_proxy
    endpoints: [ { lb_endpoints: [ { endpoint: { address: { pipe: { path: {{ include "diana.socket" $ }} } } } } ] } ]
{{- end }}
- name: {{ $name }}_redis_server
  connect_timeout: {{ include "diana.patience" $ }}
  upstream_connection_options: { tcp_keepalive: { keepalive_time: 60, keepalive_interval: 10, keepalive_probes: 3 } }
  {{- if .cluster }}
  wait_for_warm_on_init: false
  lb_policy: CLUSTER_PROVIDED
  cluster_type:
    name: envoy.clusters.redis
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.clusters.redis.v3.RedisClusterConfig
      cluster_refresh_rate: 1s
      cluster_refresh_timeout: 0.5s
      redirect_refresh_interval: 0.5s
      redirect_refresh_threshold: 1
      failure_refresh_threshold: 1
  {{- else }}
  type: STRICT_DNS
  {{- end }}
  load_assignment: {{ include "diana.endpoint" (list (printf "%s_redis_server" $name) .address .port) }}
  {{- if or .username .passwordEnv }}
  typed_extension_protocol_options:
    envoy.filters.network.redis_proxy:
      "@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions
      {{- with .username }}
      auth_username: { inline_string: {{ . | quote }} }
      {{- end }}
      {{- with .passwordEnv }}
      auth_password: { environment_variable: {{ . }} }
      {{- end }}
  {{- end }}
  {{- else }}
- name: {{ $name }}_redis
  type: STRICT_DNS
  connect_timeout: 0.25s
  upstream_connection_options: { tcp_keepalive: { keepalive_time: 60, keepalive_interval: 10, keepalive_probes: 3 } }
  {{- if not $native }}
  upstream_config:
    name: envoy.upstreams.http.tcp
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.tcp.v3.TcpConnectionPoolProto
  typed_extension_protocol_options:
    envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
      common_http_protocol_options: { max_requests_per_connection: 1 }
      explicit_http_config: { http_protocol_options: {} }
  {{- end }}
  load_assignment: {{ include "diana.endpoint" (list (printf "%s_redis" $name) .address .port) }}
  {{- end }}
  {{- if .tls.enabled }}
  transport_socket: {{ include "diana.tls" (dict "name" (.tls.name | default .address) "ca" .tls.ca) | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The listeners behind the cluster of a proxied Redis, or the one to which the dynamic module connects. */}}
{{- define "diana.listeners" -}}
{{- $name := include "diana.filter.name" . }}
{{- $proxied := include "diana.proxied" . }}
{{- $native := include "diana.native" . }}
listeners:
{{- if and $proxied (not $native) }}
- name: {{ $name }}_redis
  internal_listener: {}
  filter_chains:
  - filters:
    - name: envoy.filters.network.http_connection_manager
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: diana_redis
        generate_request_id: false
        delayed_close_timeout: 0s
        upgrade_configs: [ { upgrade_type: CONNECT } ]
        http_filters:
        - name: envoy.filters.http.router
          typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
        route_config:
          virtual_hosts:
          - name: redis
            domains: ["*"]
            routes:
            - match: { prefix: "/" }
              route: { cluster: {{ $name }}_redis_proxy, upgrade_configs: [ { upgrade_type: CONNECT, connect_config: { allow_post: true } } ] }
{{- end }}
{{- if or $proxied (and $native .Values.redis.enabled) }}
- name: {{ $name }}_redis_proxy
  address: { pipe: { path: {{ include "diana.socket" . }}, mode: 384 } }
  filter_chains:
  - filters:
    {{- if $proxied }}
    - name: envoy.filters.network.redis_proxy
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy
        stat_prefix: diana_redis
        settings:
          op_timeout: {{ include "diana.patience" . }}
          {{- if .Values.redis.cluster }}
          enable_hashtagging: true
          enable_redirection: true
          dns_cache_config: { name: {{ $name }}_redis, dns_lookup_family: V4_PREFERRED }
          {{- end }}
        prefix_routes: { catch_all_route: { cluster: {{ $name }}_redis_server } }
    {{- else }}
    - name: envoy.filters.network.tcp_proxy
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
        stat_prefix: diana_redis
        cluster: {{ $name }}_redis
    {{- end }}
{{- end }}
{{- end }}

{{/* Shorter than `redis.settings.timeout`, so that a node that hangs does not delay the others. */}}
{{- define "diana.patience" -}}
{{- $ms := .Values.redis.settings.timeout | default "20ms" | replace "1s" "1000ms" | trimSuffix "ms" | atoi }}
{{- regexReplaceAll "0+$" (printf "0.%06d" (mul $ms 600)) "" }}s
{{- end }}

{{/* In a folder that the proxy can write. Its name is short, since Linux allows 107 bytes. */}}
{{- define "diana.socket" -}}
{{ ternary "/etc/istio/proxy" "/dev/shm" (eq .Values.controlPlane "istio") }}/diana-{{ include "diana.id" . | sha256sum | trunc 12 }}.sock
{{- end }}

{{- define "diana.endpoint" -}}
{ cluster_name: {{ index . 0 }}, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: {{ index . 1 | quote }}, port_value: {{ index . 2 }} } } } } ] } ] }
{{- end }}

{{- define "diana.tls" -}}
name: envoy.transport_sockets.tls
typed_config:
  "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
  sni: {{ .name | quote }}
  common_tls_context:
    validation_context:
      trusted_ca: {{ toJson (empty .ca | ternary (dict "filename" "/etc/ssl/certs/ca-certificates.crt") (dict "inline_string" .ca)) }}
      match_typed_subject_alt_names: [ { san_type: DNS, matcher: { exact: {{ .name | quote }} } } ]
{{- end }}
