{{/* The name of the chart's objects. */}}
{{- define "diana.name" -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- ternary $release (printf "%s-diana" $release) (contains "diana" $release) | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* The same in a namespace, where releases of several namespaces may put objects. */}}
{{- define "diana.name.in" -}}
{{- $ := index . 0 }}{{- $name := include "diana.name" $ -}}
{{- if eq (index . 1) $.Release.Namespace }}{{ $name }}{{ else }}{{ $name }}-{{ $.Release.Namespace | sha256sum | trunc 8 }}{{ end }}
{{- end }}

{{- define "diana.companion" -}}
{{ include "diana.name" . }}-companion
{{- end }}

{{/* The name of the release in the gateways: of its filter's root, and in front of its metrics. */}}
{{- define "diana.id" -}}
{{ .Release.Namespace }}_{{ .Release.Name | replace "." "-" }}
{{- end }}

{{/* The namespace of its metrics. */}}
{{- define "diana.namespace" -}}
{{ .Values.filter.settings.namespace | default (include "diana.id" .) }}
{{- end }}

{{/* The name of its filter and its VM, and the prefix of its clusters. */}}
{{- define "diana.filter.name" -}}
diana_{{ include "diana.id" . }}
{{- end }}

{{- define "diana.host" -}}
{{ include "diana.companion" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "diana.labels" -}}
app.kubernetes.io/name: diana
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "diana.companion.labels" -}}
{{ include "diana.labels" . }}
app.kubernetes.io/component: companion
{{- end }}

{{/* A default in values.yaml would be merged with the labels that a user sets. */}}
{{- define "diana.selector" -}}
{{ toYaml (.Values.istio.selector | default (dict "istio" "ingressgateway")) }}
{{- end }}

{{/* The gateways' pods: a list of their namespaces and labels. */}}
{{- define "diana.pods" -}}
{{- if eq .Values.controlPlane "istio" }}
{{- range .Values.istio.targetRefs }}
- namespace: {{ $.Release.Namespace }}
  labels: {gateway.networking.k8s.io/gateway-name: {{ .name }}}
{{- else }}
- namespace: {{ .Release.Namespace }}
  labels: {{ include "diana.selector" . | fromYaml | toJson }}
{{- end }}
{{- else }}
{{- range .Values.envoyGateway.gateways }}
- namespace: {{ $.Values.envoyGateway.proxyNamespace }}
  labels:
    {{- if .class }}
    gateway.envoyproxy.io/owning-gatewayclass: {{ .class }}
    {{- else }}
    gateway.envoyproxy.io/owning-gateway-name: {{ .name }}
    gateway.envoyproxy.io/owning-gateway-namespace: {{ .namespace | default $.Release.Namespace }}
    {{- end }}
{{- end }}
{{- end }}
{{- end }}
