{{- define "a" }}x{{ template "a" . }}{{ end -}}
