{{/* Where and how the pods of a component run. Takes (list $ "engine"). */}}
{{- define "jobpolicy.placement" -}}
{{- $root := index . 0 -}}
{{- $priority := $root.Values.priorityClassName -}}
{{- if and (not $priority) (include "jobpolicy.replace" $root) }}
{{- $priority = "system-cluster-critical" }}
{{- end }}
{{- with $priority }}
priorityClassName: {{ . | toYaml }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | toYaml }}
  {{- end }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
# The delay, the drain and the last traces.
terminationGracePeriodSeconds: 40
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "jobpolicy.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
securityContext:
  runAsNonRoot: true
  {{- with $root.Values.runAsUser }}
  runAsUser: {{ int64 . }}
  runAsGroup: {{ int64 . }}
  # Lets the user read mounted certificates.
  fsGroup: {{ int64 . }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "jobpolicy.podLabels" -}}
{{ include "jobpolicy.selector" . }}
{{- with (index . 0).Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Image and environment of a component's container. Takes (list $ "engine"). */}}
{{- define "jobpolicy.container" -}}
{{- $root := index . 0 -}}
image: {{ printf "%s/jobpolicy-%s:%s" $root.Values.image.repository (index . 1) (include "jobpolicy.tag" $root) }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
env:
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  {{- if eq (index . 1) "engine" }}
  - name: MEMORY_LIMIT
    valueFrom:
      resourceFieldRef:
        resource: limits.memory
  {{- else }}
  # The host's name is its first 63 bytes only; who holds the lease is a pod.
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  {{- end }}
  {{- with $root.Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* The volume of a Secret with a certificate. Takes the Secret's name. */}}
{{- define "jobpolicy.tlsVolume" -}}
- name: tls
  secret:
    secretName: {{ . }}
    # 0440: the group is fsGroup.
    defaultMode: 288
    # A pod waits until all three are there.
    items:
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
      - {key: ca.crt, path: ca.crt}
{{- end }}

{{/* Takes (list $ "engine"). One replica has no budget: it would only hold up drains. */}}
{{- define "jobpolicy.disruptionBudget" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- if gt (int (index $root.Values $component).replicas) 1 -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "jobpolicy.fullname" $root }}-{{ $component }}
  namespace: {{ $root.Release.Namespace | toYaml }}
  labels:
    {{- include "jobpolicy.labels" . | nindent 4 }}
spec:
  minAvailable: 1
  # One that is not ready protects nothing, and must not hold up a drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "jobpolicy.selector" . | nindent 6 }}
{{- end }}
{{- end }}
