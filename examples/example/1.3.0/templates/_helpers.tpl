{{/* What every pod of the addon has: an account without a token, and how it may pull its image. */}}
{{- define "example.pod" -}}
serviceAccountName: example
automountServiceAccountToken: false
{{- with .Values.zaentrum.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .Values.zaentrum.issuerHostAliasIP }}
hostAliases:
  - ip: {{ . | quote }}
    hostnames:
      - {{ (urlParse $.Values.zaentrum.issuer).hostname | quote }}
{{- end }}
{{- end -}}

{{/* Who every pod of the addon runs as: nobody in particular. */}}
{{- define "example.user" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* What every container of the addon has. */}}
{{- define "example.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: ["ALL"]
{{- end -}}

{{/* What the primary and the worker learn about the platform. */}}
{{- define "example.platform" -}}
- name: OIDC_ISSUER
  value: {{ .Values.zaentrum.issuer | quote }}
- name: KAFKA_BROKERS
  value: {{ .Values.zaentrum.events.brokers | quote }}
- name: TOPIC_PREFIX
  value: {{ .Values.zaentrum.events.topicPrefix | quote }}
{{- end -}}

{{/* The inputs that are secret. */}}
{{- define "example.secrets" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: example-env
      key: database-url
- name: EXAMPLE_CONFIG_KEY
  valueFrom:
    secretKeyRef:
      name: example-env
      key: config-key
{{- end -}}
