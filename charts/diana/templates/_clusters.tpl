{{/* The clusters that Diana calls, as a list; what is in them, see envoy/fleet.yaml. */}}
{{- define "diana.clusters" -}}
{{- if .Values.redis.enabled }}
- name: diana_redis
  type: STRICT_DNS
  connect_timeout: 0.25s
  upstream_config:
    name: envoy.upstreams.http.tcp
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.tcp.v3.TcpConnectionPoolProto
  typed_extension_protocol_options:
    envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
      "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
      common_http_protocol_options: { max_requests_per_connection: 1 }
      explicit_http_config: { http_protocol_options: {} }
  load_assignment: {{ include "diana.endpoint" (list "diana_redis" .Values.redis) }}
{{- end }}
{{- if .Values.centre.enabled }}
- name: config_centre
  type: STRICT_DNS
  connect_timeout: 0.5s
  load_assignment: {{ include "diana.endpoint" (list "config_centre" .Values.centre) }}
{{- end }}
{{- end }}

{{- define "diana.endpoint" -}}
{{- $name := index . 0 }}{{ $at := index . 1 -}}
{ cluster_name: {{ $name }}, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: {{ $at.address | quote }}, port_value: {{ $at.port }} } } } } ] } ] }
{{- end }}

{{/* The clusters one by one, under the key `clusters`. */}}
{{- define "diana.called" -}}
clusters:
{{- include "diana.clusters" . }}
{{- end }}
