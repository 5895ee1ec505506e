package jobcheck

// podFields says what the API server (v1.37) asks of single fields of a CronJob, a Job, its pod template and
// spec.scheduling. A line names a type of the API and a field, and then, in any order:
//
//	elsewhere  another check looks at the field and all that is in it
//	required   the field must not be empty, and has no default
//	A|B        it is one of these words
//	1..9       it is in this range
//	max=3      it has at most so many elements
//	length=9   it has at most so many characters
//	unique=x   its elements differ in their field x
//	word       it has the form of this name, see formats
//
// The form of a list is that of each of its elements. A line that names only a type says that
// one, or at most one, of the type's pointers is set, or of those that it lists.
const podFields = `
CronJobSpec.concurrencyPolicy        Allow|Forbid|Replace
CronJobSpec.startingDeadlineSeconds  0..
CronJobSpec.successfulJobsHistoryLimit 0..
CronJobSpec.failedJobsHistoryLimit   0..
CronJobSpec.jobTemplate              elsewhere
JobSpec.completionMode               NonIndexed|Indexed
JobSpec.podReplacementPolicy         TerminatingOrFailed|Failed
JobSpec.selector                     elsewhere
JobSpec.template                     elsewhere
JobSpec.scheduling                   elsewhere
PodFailurePolicyRule.action          FailJob|FailIndex|Ignore|Count
PodFailurePolicyOnExitCodesRequirement.operator In|NotIn
PodFailurePolicyOnPodConditionsPattern.status True|False|Unknown
PodFailurePolicyOnPodConditionsPattern.type qualified
PodSpec.ephemeralContainers          elsewhere
PodSpec.containers                   required
PodSpec.volumes                      unique=name
PodSpec.activeDeadlineSeconds        1..2147483647
PodSpec.dnsPolicy                    ClusterFirst|ClusterFirstWithHostNet|Default|None
PodSpec.nodeSelector                 labels
PodSpec.serviceAccountName           subdomain
PodSpec.nodeName                     subdomain
PodSpec.hostname                     label
PodSpec.subdomain                    label
PodSpec.hostnameOverride             subdomain length=64
PodSpec.priorityClassName            subdomain
PodSpec.runtimeClassName             subdomain
PodSpec.preemptionPolicy             PreemptLowerPriority|Never
PodSpec.schedulingGates              unique=name
PodSpec.resourceClaims               unique=name
PodSchedulingGate.name               required qualified
PodReadinessGate.conditionType       required qualified
PodResourceClaim                     one=resourceClaimName|resourceClaimTemplateName
PodResourceClaim.name                required label
PodResourceClaim.resourceClaimName   subdomain
PodResourceClaim.resourceClaimTemplateName subdomain
PodOS.name                           required linux|windows
HostAlias.ip                         required ip
HostAlias.hostnames                  subdomain
PodDNSConfig.nameservers             ip max=3
PodDNSConfig.searches                search max=32
PodDNSConfigOption.name              required
Toleration.key                       qualifiedOrEmpty
Toleration.operator                  Exists|Equal
Toleration.effect                    NoSchedule|PreferNoSchedule|NoExecute
TopologySpreadConstraint.maxSkew     1..
TopologySpreadConstraint.topologyKey required
TopologySpreadConstraint.whenUnsatisfiable required DoNotSchedule|ScheduleAnyway
TopologySpreadConstraint.minDomains  1..
TopologySpreadConstraint.nodeAffinityPolicy Honor|Ignore
TopologySpreadConstraint.nodeTaintsPolicy Honor|Ignore
TopologySpreadConstraint.matchLabelKeys qualified
PodAffinityTerm.topologyKey          required qualified
PodAffinityTerm.namespaces           label
PodAffinityTerm.matchLabelKeys       qualified
PodAffinityTerm.mismatchLabelKeys    qualified
WeightedPodAffinityTerm.weight       1..100
PreferredSchedulingTerm.weight       1..100
NodeSelector.nodeSelectorTerms       required
NodeSelectorRequirement.key          qualified
PodSecurityContext.fsGroup           id
PodSecurityContext.runAsUser         id
PodSecurityContext.runAsGroup        id
PodSecurityContext.supplementalGroups id
PodSecurityContext.fsGroupChangePolicy OnRootMismatch|Always
PodSecurityContext.supplementalGroupsPolicy Merge|Strict
PodSecurityContext.seLinuxChangePolicy Recursive|MountOption
PodSecurityContext.sysctls           unique=name
Sysctl.name                          required sysctl
SecurityContext.runAsUser            id
SecurityContext.runAsGroup           id
SecurityContext.procMount            Default|Unmasked
SeccompProfile.type                  required Localhost|RuntimeDefault|Unconfined
AppArmorProfile.type                 required Localhost|RuntimeDefault|Unconfined

Container.name                       required label
Container.image                      required trimmed
Container.imagePullPolicy            Always|IfNotPresent|Never
Container.terminationMessagePolicy   File|FallbackToLogsOnError
Container.restartPolicy              Always|Never|OnFailure
Container.restartPolicyRules         max=20
Container.ports                      unique=name
Container.resizePolicy               unique=resourceName
ContainerRestartRule.action          required Restart|RestartAllContainers
ContainerRestartRule.exitCodes       required
ContainerRestartRuleOnExitCodes.operator required In|NotIn
ContainerRestartRuleOnExitCodes.values max=255
ContainerResizePolicy.resourceName   required cpu|memory
ContainerResizePolicy.restartPolicy  required NotRequired|RestartContainer
ContainerPort.name                   portName
ContainerPort.containerPort          1..65535
ContainerPort.hostPort               0..65535
ContainerPort.protocol               TCP|UDP|SCTP
EnvVar.name                          required envName
EnvFromSource                        one
EnvFromSource.prefix                 envName
EnvVarSource                         one
ConfigMapEnvSource.name              required subdomainPrefix
SecretEnvSource.name                 required subdomainPrefix
ConfigMapKeySelector.name            required subdomain
ConfigMapKeySelector.key             required configKey
SecretKeySelector.name               required subdomain
SecretKeySelector.key                required configKey
FileKeySelector.key                  required envName
FileKeySelector.volumeName           required label
FileKeySelector.path                 required noDotDot
ObjectFieldSelector.apiVersion       v1
ObjectFieldSelector.fieldPath        required
ResourceFieldSelector.resource       required podResource
VolumeMount.name                     required
VolumeMount.mountPath                required
VolumeMount.subPath                  relative
VolumeMount.subPathExpr              relative
VolumeMount.mountPropagation         None|HostToContainer|Bidirectional
VolumeMount.recursiveReadOnly        Disabled|Enabled|IfPossible
Container.volumeMounts               unique=mountPath
Container.volumeDevices              unique=name unique=devicePath
VolumeDevice.name                    required
VolumeDevice.devicePath              required noDotDot
ProbeHandler                         one
LifecycleHandler                     one=exec|httpGet|tcpSocket|sleep
Probe.initialDelaySeconds            0..
Probe.timeoutSeconds                 0..
Probe.periodSeconds                  0..
Probe.successThreshold               0..
Probe.failureThreshold               0..
Probe.terminationGracePeriodSeconds  1..
ExecAction.command                   required
HTTPGetAction.port                   port
HTTPGetAction.scheme                 HTTP|HTTPS
HTTPHeader.name                      required header
TCPSocketAction.port                 port
GRPCAction.port                      1..65535

Volume.name                          required label
VolumeSource                         atMostOne
VolumeProjection                     atMostOne
HostPathVolumeSource.path            required noDotDot
HostPathVolumeSource.type            |DirectoryOrCreate|Directory|FileOrCreate|File|Socket|CharDevice|BlockDevice
EmptyDirVolumeSource.sizeLimit       notNegative
SecretVolumeSource.secretName        required
SecretVolumeSource.defaultMode       0..511
ConfigMapVolumeSource.name           required
ConfigMapVolumeSource.defaultMode    0..511
KeyToPath.key                        required
KeyToPath.path                       required local
KeyToPath.mode                       0..511
DownwardAPIVolumeSource.defaultMode  0..511
DownwardAPIVolumeFile                one=fieldRef|resourceFieldRef
DownwardAPIVolumeFile.path           required local
DownwardAPIVolumeFile.mode           0..511
ProjectedVolumeSource.defaultMode    0..511
SecretProjection.name                required
ConfigMapProjection.name             required
ServiceAccountTokenProjection.path   required local
ServiceAccountTokenProjection.expirationSeconds 600..4294967296
ClusterTrustBundleProjection         one=name|signerName
ClusterTrustBundleProjection.name    trustBundle
ClusterTrustBundleProjection.signerName signer
ClusterTrustBundleProjection.path    required local
PodCertificateProjection.signerName  required signer
PodCertificateProjection.keyType     required RSA3072|RSA4096|ECDSAP256|ECDSAP384|ECDSAP521|ED25519
PodCertificateProjection.maxExpirationSeconds 3600..7862400
PodCertificateProjection.credentialBundlePath local
PodCertificateProjection.keyPath     local
PodCertificateProjection.certificateChainPath local
PodCertificateProjection.userAnnotations prefixedKeys
PersistentVolumeClaimVolumeSource.claimName required
EphemeralVolumeSource.volumeClaimTemplate required
PersistentVolumeClaimSpec.accessModes required ReadWriteOnce|ReadOnlyMany|ReadWriteMany|ReadWriteOncePod
PersistentVolumeClaimSpec.storageClassName subdomainOrEmpty
PersistentVolumeClaimSpec.volumeAttributesClassName subdomainOrEmpty
PersistentVolumeClaimSpec.volumeMode Filesystem|Block
TypedLocalObjectReference.name       required
TypedLocalObjectReference.kind       required
TypedLocalObjectReference.apiGroup   subdomainOrEmpty
TypedObjectReference.name            required
TypedObjectReference.kind            required
TypedObjectReference.apiGroup        subdomainOrEmpty
TypedObjectReference.namespace       labelOrEmpty
ImageVolumeSource.reference          required
ImageVolumeSource.pullPolicy         Always|IfNotPresent|Never
CSIVolumeSource.driver               required csiDriver
NFSVolumeSource.server               required
NFSVolumeSource.path                 required absolute
GitRepoVolumeSource.repository       required
GitRepoVolumeSource.directory        relative
ISCSIVolumeSource.targetPortal       required
ISCSIVolumeSource.iqn                required
ISCSIVolumeSource.lun                0..255
GCEPersistentDiskVolumeSource.pdName required
GCEPersistentDiskVolumeSource.partition 0..255
AWSElasticBlockStoreVolumeSource.volumeID required
AWSElasticBlockStoreVolumeSource.partition 0..255
GlusterfsVolumeSource.endpoints      required
GlusterfsVolumeSource.path           required
RBDVolumeSource.monitors             required
RBDVolumeSource.image                required
CinderVolumeSource.volumeID          required
CephFSVolumeSource.monitors          required
QuobyteVolumeSource.registry         required
QuobyteVolumeSource.volume           required
QuobyteVolumeSource.tenant           length=64
FlexVolumeSource.driver              required
AzureFileVolumeSource.secretName     required
AzureFileVolumeSource.shareName      required
AzureDiskVolumeSource.diskName       required
AzureDiskVolumeSource.diskURI        required
AzureDiskVolumeSource.cachingMode    None|ReadOnly|ReadWrite
AzureDiskVolumeSource.kind           Shared|Dedicated|Managed
VsphereVirtualDiskVolumeSource.volumePath required
PhotonPersistentDiskVolumeSource.pdID required
PortworxVolumeSource.volumeID        required
ScaleIOVolumeSource.gateway          required
ScaleIOVolumeSource.system           required
ScaleIOVolumeSource.volumeName       required
StorageOSVolumeSource.volumeName     required label
StorageOSVolumeSource.volumeNamespace label
PodSchedulingGroup                   one
PodSchedulingGroup.podGroupName      subdomain
JobSchedulingConfiguration.resourceClaims max=4 unique=name
WorkloadPodGroupSchedulingPolicy     one
WorkloadPodGroupGangSchedulingPolicy.minCount 1..2147483647
WorkloadPodGroupSchedulingConstraints.topology max=1
TopologyConstraint.key               required qualified
WorkloadPodGroupDisruptionMode       one
WorkloadPodGroupResourceClaim        one=resourceClaimName|resourceClaimTemplateName
WorkloadPodGroupResourceClaim.name   required label
WorkloadPodGroupResourceClaim.resourceClaimName subdomain
WorkloadPodGroupResourceClaim.resourceClaimTemplateName subdomain
`
