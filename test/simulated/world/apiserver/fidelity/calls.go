package fidelity

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

const (
	mergePatch     = "application/merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
	asJSON         = "application/json"
	asProtobuf     = "application/vnd.kubernetes.protobuf"
)

// call draws a request.
func (d *drawer) call() call {
	c := pick(d, d.create, d.create, d.create, d.update, d.update, d.status, d.status, d.patch, d.patch,
		d.remove, d.remove, d.removeAll, d.get, d.list, d.list, d.bind)()
	if c.contentType == asJSON && d.once(3) {
		c.contentType = asProtobuf
	}
	switch d.IntN(4) {
	case 0:
		c.accept = asProtobuf + "," + asJSON
	case 1:
		c.accept = asJSON
	}
	if d.once(25) {
		c.accept = pick(d, "text/html", asJSON+";as=Table;v=v1;g=meta.k8s.io", asJSON+";as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
			asJSON+";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,"+asJSON)
	}
	return c
}

// some returns one of the objects made last, or one that never existed.
func (d *drawer) some() ref {
	if len(d.known) == 0 || d.once(15) {
		return ref{d.resource(), "missing"}
	}
	return pick(d, d.known[max(0, len(d.known)-recent):]...)
}

const recent = 6

func (d *drawer) path(r ref) string { return d.collection(r.resource) + "/" + r.name }

func (d *drawer) create() call {
	resource := d.resource()
	obj := d.object(resource)
	c := call{method: "POST", path: d.collection(resource), text: "create " + resource, contentType: asJSON}
	if d.once(12) {
		c.query = pick(d, "dryRun=All", "fieldValidation=Strict", "fieldValidation=Ignore", "fieldValidation=x", "dryRun=x", "fieldManager=me")
	}
	switch d.IntN(40) {
	case 0:
		c.body = func(*side) []byte { return []byte(`{"kind":`) }
		return c
	case 1:
		obj["kind"] = "Secret"
	case 2:
		obj["apiVersion"] = "apps/v1"
	case 3:
		delete(obj, "kind")
	case 4:
		c.contentType = "text/plain"
	}
	c.body = marshal(obj)
	return c
}

// marshal returns a body. References to owners are resolved on each side.
func marshal(obj any) func(*side) []byte {
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return func(s *side) []byte { return s.resolve(data) }
}

// resolve replaces "uid-of:…" by UIDs, and tokens by names.
func (s *side) resolve(data []byte) []byte {
	text := string(data)
	for r := range s.seen {
		if mark := ownerOf(r); strings.Contains(text, mark+`"`) {
			text = strings.ReplaceAll(text, mark+`"`, s.uid(r)+`"`)
		}
	}
	return []byte(s.names.actual(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)))
}

func (s *side) uid(r ref) string {
	meta, _ := s.last(r)["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	return uid
}

func (d *drawer) update() call {
	r := d.some()
	change := d.change(r.resource)
	which := 0
	if d.once(8) {
		which = 1 + d.IntN(2) // An earlier version.
	}
	c := call{method: "PUT", path: d.path(r), about: r, contentType: asJSON, text: "update " + change.text}
	c.body = func(s *side) []byte {
		obj := s.version(r, len(s.seen[r])-1-which)
		obj["apiVersion"], obj["kind"] = apiVersion(r.resource), kinds[r.resource].kind
		change.apply(obj)
		return s.resolve(noError(json.Marshal(obj)))
	}
	return c
}

func noError[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (d *drawer) status() call {
	r := d.some()
	for range 5 {
		if r.resource == "jobs" || r.resource == "pods" {
			break
		}
		r = d.some()
	}
	c := call{method: "PUT", path: d.path(r) + "/status", about: r, contentType: asJSON, text: "update status"}
	if d.once(3) {
		c.method, c.contentType, c.text = "PATCH", pick(d, mergePatch, strategicPatch), "patch status"
		status := fields{"status": d.podStatus()}
		if r.resource == "jobs" {
			status = fields{"status": d.jobStatus(nil)}
		}
		c.body = marshal(status)
		return c
	}
	pod, seed := d.podStatus(), d.Uint64()
	c.body = func(s *side) []byte {
		obj := s.last(r)
		obj["apiVersion"], obj["kind"] = apiVersion(r.resource), kinds[r.resource].kind
		if r.resource == "jobs" {
			before, _ := obj["status"].(map[string]any)
			obj["status"] = newDrawer(seed).jobStatus(before)
		} else {
			obj["status"] = pod
		}
		return s.resolve(noError(json.Marshal(obj)))
	}
	return c
}

func (d *drawer) patch() call {
	r := d.some()
	c := call{method: "PATCH", path: d.path(r), about: r, text: "patch"}
	c.contentType = pick(d, mergePatch, mergePatch, strategicPatch, strategicPatch, jsonPatch, jsonPatch, "text/plain")
	if c.contentType == jsonPatch {
		c.body = marshal(d.jsonPatch())
		return c
	}
	body := pick[any](d,
		fields{"metadata": fields{"labels": fields{"color": pick(d, "red", "green")}}},
		fields{"metadata": fields{"labels": nil}},
		fields{"metadata": fields{"finalizers": []any{"example.com/three"}}},
		fields{"metadata": fields{"finalizers": nil}},
		fields{"metadata": fields{"$deleteFromPrimitiveList/finalizers": []any{"example.com/one"}}},
		fields{"metadata": fields{"resourceVersion": "1"}},
		fields{"metadata": fields{"uid": "11111111-2222-3333-4444-555555555555", "labels": fields{"a": "b"}}},
		fields{"metadata": fields{"uid": ownerOf(r), "finalizers": []any{"example.com/one"}}},
		fields{"metadata": fields{"ownerReferences": []any{fields{"uid": ownerOf(r), "$patch": "delete"}}}},
		fields{"spec": fields{"parallelism": int64(d.IntN(4)), "suspend": d.once(2)}},
		fields{"spec": fields{"unknown": true}},
		fields{},
		[]any{"no object"},
	)
	c.body = marshal(body)
	return c
}

func (d *drawer) jsonPatch() any {
	return pick[any](d,
		[]any{fields{"op": "add", "path": "/metadata/labels", "value": fields{"color": "red"}}},
		[]any{fields{"op": "remove", "path": "/metadata/finalizers"}},
		[]any{fields{"op": "test", "path": "/metadata/name", "value": "o1"}, fields{"op": "add", "path": "/metadata/annotations", "value": fields{"a": "b"}}},
		[]any{fields{"op": "replace", "path": "/spec/parallelism", "value": int64(d.IntN(3))}},
		[]any{fields{"op": "remove", "path": "/metadata/finalizers/0"}},
		[]any{fields{"op": "nonsense", "path": "/a"}},
		[]any{},
	)
}

func (d *drawer) remove() call {
	r := d.some()
	c := call{method: "DELETE", path: d.path(r), about: r, contentType: asJSON, text: "delete"}
	options, conditional := d.deleteOptions(), d.IntN(8)
	which := d.IntN(2)
	if d.once(4) {
		c.contentType = ""
		c.query = pick(d, "propagationPolicy=Background", "gracePeriodSeconds=0", "propagationPolicy=Foreground&gracePeriodSeconds=1", "orphanDependents=true", "propagationPolicy=x")
		return c
	}
	c.body = func(s *side) []byte {
		obj := s.version(r, len(s.seen[r])-1-which)
		meta, _ := obj["metadata"].(map[string]any)
		switch conditional {
		case 0:
			options["preconditions"] = fields{"uid": meta["uid"]}
		case 1:
			options["preconditions"] = fields{"resourceVersion": meta["resourceVersion"]}
		case 2:
			options["preconditions"] = fields{"uid": "11111111-2222-3333-4444-555555555555"}
		}
		return s.resolve(noError(json.Marshal(options)))
	}
	return c
}

func (d *drawer) deleteOptions() fields {
	options := fields{"apiVersion": "v1", "kind": "DeleteOptions"}
	switch d.IntN(4) {
	case 0:
		options["gracePeriodSeconds"] = int64(pick(d, 0, 0, 7))
	case 1:
		options["propagationPolicy"] = pick(d, "Background", "Foreground", "Orphan", "Nonsense")
	case 2:
		options["propagationPolicy"], options["gracePeriodSeconds"] = pick(d, "Background", "Foreground"), int64(0)
	}
	if d.once(20) {
		options["orphanDependents"] = d.once(2)
	}
	if d.once(20) {
		options["dryRun"] = []any{"All"}
	}
	return options
}

func (d *drawer) removeAll() call {
	resource := d.resource()
	c := call{method: "DELETE", path: d.collection(resource), text: "delete all " + resource}
	c.query = "labelSelector=" + url.QueryEscape(pick(d, "color=red", "color in (red,blue)", "size=small", "size!", "nobody"))
	if d.once(3) {
		c.query += "&propagationPolicy=" + pick(d, "Background", "Foreground", "Orphan")
	}
	return c
}

// bind gives a pod a node.
func (d *drawer) bind() call {
	r := d.some()
	binding := fields{
		"apiVersion": "v1", "kind": "Binding", "metadata": fields{"name": pick(d, r.name, r.name, "other")},
		"target": fields{"kind": "Node", "name": "node"},
	}
	return call{method: "POST", path: d.path(r) + "/binding", contentType: asJSON, body: marshal(binding), text: "bind"}
}

func (d *drawer) get() call {
	r := d.some()
	c := call{method: "GET", path: d.path(r), about: r, text: "get"}
	if d.once(4) {
		c.query = pick(d, "resourceVersion=0", "resourceVersion=1", "resourceVersion=x")
	}
	if d.once(8) {
		c.path += pick(d, "/status", "/nonsense")
	}
	return c
}

func (d *drawer) list() call {
	resource := d.resource()
	query := url.Values{}
	if d.once(2) {
		query.Set("labelSelector", pick(d, "color=red", "color in (red,blue),size", "!color", "not valid!"))
	}
	if d.once(3) {
		query.Set("fieldSelector", pick(d, "metadata.name=o1", "status.phase=Running", "spec.nodeName=node", "status.successful=0",
			"reason=Drawn", "metadata.namespace="+d.namespace, "nonsense=1"))
	}
	if d.once(3) {
		query.Set("limit", fmt.Sprint(1+d.IntN(3)))
	}
	if d.once(3) {
		query.Set("resourceVersion", pick(d, "0", "1", "x"))
		if d.once(2) {
			query.Set("resourceVersionMatch", pick(d, "NotOlderThan", "NotOlderThan", "Exact", "x"))
		}
	}
	if query.Get("resourceVersion") == "1" {
		query.Del("limit") // An old version may or may not be compacted.
		if query.Get("resourceVersionMatch") == "Exact" {
			query.Set("resourceVersionMatch", "NotOlderThan")
		}
	}
	return call{method: "GET", path: d.collection(resource), query: query.Encode(), text: "list"}
}
