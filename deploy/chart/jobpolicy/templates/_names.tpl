{{/* The prefix of all names. It leaves room for what is appended within the 63 bytes of a label. The name of a Service
begins with a letter and has no dot; that of a release may. */}}
{{- define "jobpolicy.fullname" -}}
{{- $name := .Release.Name | replace "." "-" -}}
{{- if regexMatch "^[0-9]" $name -}}
{{- $name = printf "%s-%s" .Chart.Name $name -}}
{{- else if not (contains .Chart.Name $name) -}}
{{- $name = printf "%s-%s" $name .Chart.Name -}}
{{- end -}}
{{- .Values.fullnameOverride | default $name | trunc 48 | trimAll "-" -}}
{{- end }}

{{/* What tells the pods of one component of this release. Takes (list $ "engine"). */}}
{{- define "jobpolicy.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name | toYaml }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "jobpolicy.labels" -}}
{{ include "jobpolicy.selector" . }}
app.kubernetes.io/version: {{ include "jobpolicy.tag" (index . 0) | trunc 63 | trimAll "-_." | quote }}
{{- end }}

{{- define "jobpolicy.tag" -}}
{{- .Values.image.tag | default (.Chart.AppVersion | replace "+" "-") -}}
{{- end }}

{{/* "true" where the engine has pods of its own. */}}
{{- define "jobpolicy.remote" -}}
{{- if not (or (hasPrefix "embedded" .Values.mode) (include "jobpolicy.shadow" .)) -}}true{{- end -}}
{{- end }}

{{/* "true" where nothing is written. */}}
{{- define "jobpolicy.shadow" -}}
{{- if eq .Values.mode "shadow" -}}true{{- end -}}
{{- end }}

{{- define "jobpolicy.replace" -}}
{{- if hasSuffix "replace" .Values.mode -}}true{{- end -}}
{{- end }}

{{/* "true" where the executor makes the certificates. */}}
{{- define "jobpolicy.selfManaged" -}}
{{- if and (include "jobpolicy.remote" .) (eq .Values.certificates.mode "selfManaged") -}}true{{- end -}}
{{- end }}

{{/* "true" where cert-manager does. */}}
{{- define "jobpolicy.certManager" -}}
{{- if and (include "jobpolicy.remote" .) (eq .Values.certificates.mode "certManager") -}}true{{- end -}}
{{- end }}

{{/* Other callers of the engine: a list of name, namespace and secret, as YAML. No two have the same Secret. */}}
{{- define "jobpolicy.clients" -}}
{{- $taken := list }}
{{- range .Values.certificates.clients }}
{{- $namespace := .namespace | default $.Release.Namespace }}
{{- if include "jobpolicy.certManager" $ }}
{{- $namespace = $.Release.Namespace }}
{{- end }}
{{- $secret := printf "%s-client-%s" (include "jobpolicy.fullname" $) .name }}
{{- if has (list $namespace $secret) $taken }}
{{- fail (printf "certificates.clients: two named %s would have the same Secret %s in namespace %s" .name $secret $namespace) }}
{{- end }}
{{- $taken = append $taken (list $namespace $secret) }}
- name: {{ .name | toYaml }}
  namespace: {{ $namespace | toYaml }}
  secret: {{ $secret }}
{{- end }}
{{- end }}
