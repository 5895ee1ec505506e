// Package hostnode is a Kubernetes node without containers: a small kubelet that registers a Node and runs the command
// of every container of every pod bound to it as an ordinary process of this machine.
//
// IT ISOLATES NOTHING. A container's command runs as the user who started the node, on the machine's own file system,
// network and process table, without resource limits, and with every right that user has. Whoever may create a pod in
// the cluster may run anything here. The package is made for trying things out on one's own machine, behind an API
// server that listens on loopback only; it is not for a machine that other people reach, and not for untrusted pods.
//
// It needs Linux (parent death signals, /proc).
//
// It takes conditions, restart rules, logs, leases and expansion from the kubelet's packages. The kubelet itself needs a
// container runtime, and its status manager writes one pod after the other. Weighed against virtual-kubelet v1.14: that has
// node, lease and pod controllers, but neither restarts nor init containers nor conditions, and writes statuses otherwise.
//
// # What is supported
//
//	feature                                   here
//	----------------------------------------  ---------------------------------------------------------------------
//	command, args, $(VAR) expansion           as in Kubernetes; a container without a command is refused
//	image, imagePullPolicy, pull secrets      copied into the status, otherwise ignored: no image is ever read
//	env: value, fieldRef, configMapKeyRef,    as in Kubernetes; a missing object or key keeps the container waiting
//	  secretKeyRef, envFrom                     (CreateContainerConfigError) and is looked for again
//	env: resourceFieldRef, fileKeyRef         refused
//	base environment                          PATH, HOME and LANG of the node process, Config.ContainerEnv, HOSTNAME of
//	                                            the pod, JOBPOLICY_POD_DIR; no service variables
//	workingDir                                an absolute path that is a directory of this machine is used as it is; any
//	                                            other is created below the container's own directory
//	init containers, sidecars                 in order; a sidecar (restartPolicy Always) counts as started once it runs
//	                                            and is stopped after the main containers, last one first
//	restartPolicy (pod and container)         Never, OnFailure, Always, with the kubelet's crash back-off
//	restartPolicyRules                        Restart; RestartAllContainers is refused
//	deletion, grace period                    SIGTERM to the process group, SIGKILL when the period is over
//	activeDeadlineSeconds of the pod          as in Kubernetes
//	exit codes, signals                       128+n for a death by signal n; 128 and StartError if it cannot be started
//	terminationMessagePolicy                  FallbackToLogsOnError works; the message file is not read
//	readiness                                 a container is ready while it runs; probes of any kind are refused
//	lifecycle hooks, stopSignal               refused
//	emptyDir                                  a directory; see below
//	service-account token (automatic mount)   files written once at the start of the pod; see below
//	other volumes, devices, resource claims   refused
//	resources, ports, securityContext,        ignored; but runAsUser and runAsGroup other than the node's own, and
//	  DNS, host namespaces                      runAsNonRoot under a node run by root, are refused
//	hostAliases, runtimeClassName, Windows    refused
//	logs                                      stdout and stderr in one stream, follow, previous, tail, since, limit; never
//	                                            rotated; kept until the pod object is gone
//	exec, attach, port-forward                answered with 501
//
// Refused means: the pod gets phase Failed with reason UnsupportedByHostNode and a message that names every offending
// field, and none of its containers is started.
//
// # Files
//
// Below RootDir, pods/UID holds containers/NAME (the working directory, empty at the start of every run),
// logs/NAME/RESTARTS.log and volumes/NAME. The directory of a pod goes away with the pod object.
//
// # Volumes
//
// There is no mount namespace, so nothing can appear at an absolute mountPath. A container finds its volumes by
// environment variables: JOBPOLICY_VOLUME_ plus the volume's name in capitals, with _ for every other character, holds
// the path of the volume's directory (with subPath, of that directory in it). A relative mountPath is a symbolic link
// in the container's directory. The automatically mounted service-account volume is named by
// JOBPOLICY_SERVICE_ACCOUNT_DIR and holds token, ca.crt and namespace. Its token is shared by the pods of a service
// account, is not bound to a pod and not renewed; if it cannot be had, the pod runs without.
//
// # Processes
//
// Each container is the leader of a process group of its own; when the leader ends, what is left of the group is killed.
// No process outlives the node: the leaders get SIGKILL from the system when the node dies, and a watching shell kills
// every other process that carries JOBPOLICY_POD_DIR in its environment. A process that leaves its group outlives its
// container, but not the node. A restarted node treats the containers that ran under its predecessor as the kubelet does
// (ContainerStatusUnknown, exit code 137), and restarts them if their policy says so.
package hostnode
