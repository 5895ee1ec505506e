package fidelity

import "math/rand/v2"

func newDrawer(seed uint64) *drawer {
	return &drawer{Rand: rand.New(rand.NewPCG(seed, 1))}
}

// A change is an edit of an object before an update sends it back.
type change struct {
	text  string
	apply func(obj fields)
}

func inside(obj fields, name string) fields {
	part, ok := obj[name].(map[string]any)
	if !ok {
		part = fields{}
		obj[name] = part
	}
	return part
}

func (d *drawer) change(resource string) change {
	color, n := pick(d, "red", "blue"), int64(d.IntN(4))
	general := []change{
		{"nothing", func(fields) {}},
		{"labels", func(o fields) { inside(o, "metadata")["labels"] = fields{"color": color} }},
		{"finalizers", func(o fields) { delete(inside(o, "metadata"), "finalizers") }},
		{"a finalizer", func(o fields) { inside(o, "metadata")["finalizers"] = []any{"example.com/two"} }},
		{"without version", func(o fields) {
			delete(inside(o, "metadata"), "resourceVersion")
			inside(o, "metadata")["annotations"] = fields{"a": color}
		}},
		{"another UID", func(o fields) { inside(o, "metadata")["uid"] = "11111111-2222-3333-4444-555555555555" }},
		{"no UID", func(o fields) { delete(inside(o, "metadata"), "uid") }},
		{"another name", func(o fields) { inside(o, "metadata")["name"] = "other" }},
		{"deletion", func(o fields) {
			if m := inside(o, "metadata"); m["deletionTimestamp"] == nil { // See differences.go.
				m["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			}
		}},
		{"generation", func(o fields) { inside(o, "metadata")["generation"] = int64(77) }},
		{"a finalizer like no other", func(o fields) { inside(o, "metadata")["finalizers"] = []any{"plain"} }},
	}
	special := map[string][]change{
		"jobs": {
			{"parallelism", func(o fields) { inside(o, "spec")["parallelism"] = n }},
			{"completions", func(o fields) { inside(o, "spec")["completions"] = n }},
			{"suspend", func(o fields) { inside(o, "spec")["suspend"] = n%2 == 0 }},
			{"status", func(o fields) { inside(o, "status")["active"] = n }},
			{"template", func(o fields) {
				inside(inside(inside(o, "spec"), "template"), "metadata")["annotations"] = fields{"a": "b"}
			}},
		},
		"pods": {
			{"nodeName", func(o fields) { inside(o, "spec")["nodeName"] = "other" }},
			{"activeDeadlineSeconds", func(o fields) { inside(o, "spec")["activeDeadlineSeconds"] = 1 + n }},
			{"status", func(o fields) { inside(o, "status")["phase"] = "Running" }},
			{"tolerations", func(o fields) { inside(o, "spec")["tolerations"] = []any{fields{"operator": "Exists"}} }},
		},
		"cronjobs": {
			{"suspend", func(o fields) { inside(o, "spec")["suspend"] = n%2 == 0 }},
			{"schedule", func(o fields) { inside(o, "spec")["schedule"] = "@hourly" }},
		},
		"leases": {
			{"holder", func(o fields) { inside(o, "spec")["holderIdentity"] = color }},
			{"renewal", func(o fields) { inside(o, "spec")["renewTime"] = "2026-01-01T00:00:00.123456Z" }},
		},
		"configmaps": {{"data", func(o fields) { o["data"] = fields{"key": color} }}},
		"events":     {{"count", func(o fields) { o["count"] = n }}},
	}
	return pick(d, append(general, append(special[resource], special[resource]...)...)...)
}
