package fidelity

import (
	"fmt"
	"math/rand/v2"
)

// A drawer draws objects and requests. The same source draws the same.
type drawer struct {
	*rand.Rand
	namespace string
	known     []ref
	made      int
}

type fields = map[string]any

func (d *drawer) once(in int) bool { return d.IntN(in) == 0 }

func pick[T any](d *drawer, choices ...T) T { return choices[d.IntN(len(choices))] }

// kinds are the resources that requests are drawn for, and where they are served.
var kinds = map[string]struct{ group, version, kind string }{
	"jobs":       {"batch", "v1", "Job"},
	"cronjobs":   {"batch", "v1", "CronJob"},
	"pods":       {"", "v1", "Pod"},
	"events":     {"", "v1", "Event"},
	"leases":     {"coordination.k8s.io", "v1", "Lease"},
	"configmaps": {"", "v1", "ConfigMap"},
}

func (d *drawer) resource() string {
	return pick(d, "jobs", "jobs", "jobs", "pods", "pods", "pods", "pods", "cronjobs", "events", "leases", "configmaps")
}

func apiVersion(resource string) string {
	k := kinds[resource]
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

func (d *drawer) collection(resource string) string {
	root := "/api/"
	if kinds[resource].group != "" {
		root = "/apis/"
	}
	return root + apiVersion(resource) + "/namespaces/" + d.namespace + "/" + resource
}

// object draws an object of a resource, mostly a good one.
func (d *drawer) object(resource string) fields {
	meta := fields{}
	d.name(meta)
	if d.once(3) {
		meta["labels"] = d.labels()
	}
	if d.once(5) {
		meta["finalizers"] = []any{pick(d, "example.com/one", "example.com/two")}
	}
	if d.once(4) {
		d.owned(meta)
	}
	obj := fields{"apiVersion": apiVersion(resource), "kind": kinds[resource].kind, "metadata": meta}
	switch resource {
	case "jobs":
		obj["spec"] = d.jobSpec()
	case "cronjobs":
		obj["spec"] = fields{"schedule": pick(d, "@daily", "*/5 * * * *", "nonsense"), "jobTemplate": fields{"spec": d.jobSpec()}}
	case "pods":
		obj["spec"] = d.podSpec()
	case "events":
		obj["involvedObject"] = fields{"namespace": d.namespace, "kind": "Job", "name": "a"}
		obj["reason"], obj["type"] = "Drawn", "Normal"
	case "leases":
		obj["spec"] = fields{"holderIdentity": pick(d, "a", "b"), "leaseDurationSeconds": int64(d.IntN(3)) * 5}
	case "configmaps":
		obj["data"] = fields{"key": pick(d, "a", "b")}
	}
	return obj
}

func (d *drawer) name(meta fields) {
	switch d.IntN(12) {
	case 0: // No root is drawn twice: lists are sorted by name.
		d.made++
		meta["generateName"] = pick(d, fmt.Sprintf("gen%d-", d.made), fmt.Sprintf("other.gen%d-", d.made), "Bad_Gen")
	case 1:
		meta["name"] = pick(d, "UPPER", "a_b", "", "taken")
	case 2:
		meta["name"], meta["generateName"] = "both", "gen-"
	default:
		d.made++
		meta["name"] = fmt.Sprintf("o%d", d.made)
	}
	if d.once(12) {
		meta["namespace"] = pick(d, d.namespace, "elsewhere")
	}
	if d.once(15) {
		meta["resourceVersion"] = pick(d, "1", "x")
	}
	if d.once(15) {
		meta["uid"] = "11111111-2222-3333-4444-555555555555"
	}
}

func (d *drawer) labels() fields {
	return fields{"color": pick(d, "red", "blue"), "size": pick(d, "small", "large", "not valid!")}
}

// owned gives the object a known Job or config map as owner, or no owner.
func (d *drawer) owned(meta fields) {
	owner := fields{"apiVersion": "batch/v1", "kind": "Job", "name": "nobody", "uid": "99999999-2222-3333-4444-555555555555"}
	if len(d.known) > 0 {
		if r := pick(d, d.known...); r.resource == "jobs" || r.resource == "configmaps" {
			owner = fields{"apiVersion": apiVersion(r.resource), "kind": kinds[r.resource].kind, "name": r.name, "uid": ownerOf(r)}
		}
	}
	if d.once(2) {
		owner["controller"] = true
	}
	if d.once(2) {
		owner["blockOwnerDeletion"] = true
	}
	meta["ownerReferences"] = []any{owner}
}

// ownerOf stands for the UID of an object, which each side knows for itself.
func ownerOf(r ref) string { return "uid-of:" + r.resource + "/" + r.name }

func (d *drawer) podSpec() fields {
	spec := fields{
		"containers":    []any{fields{"name": "main", "image": "image"}},
		"restartPolicy": pick(d, "Never", "Never", "OnFailure", "Always"),
	}
	if d.once(2) {
		spec["nodeName"] = "node"
	}
	switch d.IntN(10) {
	case 0:
		spec["containers"] = []any{}
	case 1:
		spec["terminationGracePeriodSeconds"] = int64(pick(d, 0, 5, -1))
	case 2:
		spec["containers"] = []any{fields{"name": "main", "image": "image", "resources": fields{"requests": fields{"cpu": "1"}}}}
	case 3:
		spec["unknownField"] = true
	case 4:
		spec["tolerations"] = []any{fields{"operator": "Exists"}}
	case 5:
		spec["initContainers"] = []any{fields{"name": "side", "image": "image", "restartPolicy": "Always"}}
	}
	return spec
}

func (d *drawer) jobSpec() fields {
	spec := fields{"template": fields{"spec": d.podSpec()}}
	if d.once(2) {
		spec["parallelism"] = int64(d.IntN(4) - 1)
	}
	if d.once(2) {
		spec["completions"] = int64(d.IntN(4))
	}
	if d.once(3) {
		spec["completionMode"] = pick(d, "Indexed", "NonIndexed", "Other")
	}
	if d.once(4) {
		spec["suspend"] = true
	}
	switch d.IntN(12) {
	case 0:
		spec["backoffLimitPerIndex"] = int64(1)
	case 1:
		spec["managedBy"] = pick(d, "jobpolicy.dev/executor", "bad name")
	case 2:
		spec["podFailurePolicy"] = fields{"rules": []any{fields{
			"action":      pick(d, "FailJob", "Ignore", "Count"),
			"onExitCodes": fields{"operator": "In", "values": []any{int64(1), int64(d.IntN(3))}},
		}}}
	case 3:
		spec["successPolicy"] = fields{"rules": []any{fields{"succeededCount": int64(1)}}}
	case 4:
		spec["ttlSecondsAfterFinished"] = int64(d.IntN(10))
	case 5:
		spec["manualSelector"] = true
		spec["selector"] = fields{"matchLabels": fields{"color": "red"}}
	case 6:
		spec["podReplacementPolicy"] = pick(d, "Failed", "TerminatingOrFailed")
	}
	return spec
}
