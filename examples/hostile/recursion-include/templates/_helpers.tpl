{{- define "a" }}{{ include "b" . }}{{ end -}}
{{- define "b" }}{{ include "a" . }}{{ end -}}
