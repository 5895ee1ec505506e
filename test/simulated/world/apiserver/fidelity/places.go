package fidelity

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
)

// Calls on the namespace itself and on its quota are not drawn: the controllers of
// the real cluster have to follow them.

const (
	podsAllowed   = 3
	quotaPatience = 4 * time.Second
)

func (s *script) createNamespace(ctx context.Context) error {
	body := fields{"apiVersion": "v1", "kind": "Namespace", "metadata": fields{"name": s.namespace}}
	return s.step(ctx, call{
		method: "POST", path: "/api/v1/namespaces", contentType: asJSON, body: marshal(body), text: "create the namespace",
	})
}

func (s *script) createQuota(ctx context.Context) error {
	body := fields{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": fields{"name": "quota"},
		"spec": fields{"hard": fields{"pods": fmt.Sprint(podsAllowed)}},
	}
	path := "/api/v1/namespaces/" + s.namespace + "/resourcequotas"
	err := s.step(ctx, call{method: "POST", path: path, contentType: asJSON, body: marshal(body), text: "create a quota"})
	if err != nil {
		return err
	}
	s.quota = true
	return s.settleQuota(ctx)
}

// settleQuota waits until the real cluster has counted the pods. If that takes too long (a
// creation that was admitted and then refused is counted until the next resync), the script
// continues without the quota.
func (s *script) settleQuota(ctx context.Context) error {
	if !s.quota {
		return nil
	}
	quota := "/api/v1/namespaces/" + s.namespace + "/resourcequotas/quota"
	for end := time.Now().Add(quotaPatience); time.Now().Before(end); time.Sleep(glance) {
		r, err := s.real.do(ctx, call{method: "GET", path: quota, aside: true})
		if err != nil {
			return err
		}
		body, _ := r.Body.(map[string]any)
		if inside(inside(body, "status"), "used")["pods"] == s.countPods() {
			return nil
		}
	}
	s.quota = false
	for _, of := range []*side{s.memory, s.real} {
		if _, err := of.do(ctx, call{method: "DELETE", path: quota}); err != nil {
			return err
		}
	}
	s.story = append(s.story, "   … without the quota")
	return nil
}

// countPods counts the pods that a quota counts.
func (s *script) countPods() string {
	n := 0
	for _, pod := range s.server.List("pods", s.namespace) {
		if core.QuotaV1Pod(pod.(*corev1.Pod), clock.RealClock{}) {
			n++
		}
	}
	return fmt.Sprint(n)
}

// deleteNamespace deletes the namespace while a pod's finalizer keeps it, tries to create
// more objects, and removes the finalizer.
func (s *script) deleteNamespace(ctx context.Context) error {
	s.quota = false
	if err := s.clear(ctx); err != nil {
		return err
	}
	held := fields{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": fields{"name": "holds", "finalizers": []any{"example.com/holds"}},
	}
	holds := ref{"configmaps", "holds"}
	namespace := "/api/v1/namespaces/" + s.namespace
	job := fields{"apiVersion": "batch/v1", "kind": "Job", "metadata": fields{"name": "late"}, "spec": fields{"template": fields{"spec": fields{
		"restartPolicy": "Never", "containers": []any{fields{"name": "main", "image": "image"}},
	}}}}
	calls := []call{
		{method: "POST", path: s.collection("configmaps"), body: marshal(held), text: "hold the namespace"},
		{method: "DELETE", path: namespace, text: "delete the namespace"},
		{method: "POST", path: s.collection("jobs"), body: marshal(job), text: "create too late"},
		{method: "PATCH", path: s.path(holds), body: marshal(fields{"data": fields{"a": "b"}}), text: "patch not too late"},
	}
	for _, c := range calls {
		c.contentType = asJSON
		if c.method == "PATCH" {
			c.contentType = mergePatch
		}
		if err := s.step(ctx, c); err != nil {
			return err
		}
	}
	return s.release(ctx)
}

// clear deletes the pods, so that nobody has to wait for their time of grace.
func (s *script) clear(ctx context.Context) error {
	for len(s.server.List("pods", s.namespace)) > 0 {
		if err := s.unfinalize(ctx); err != nil {
			return err
		}
	}
	return s.rest(ctx, "the end of the pods")
}

// release removes all finalizers, until the namespace is gone on both sides.
func (s *script) release(ctx context.Context) error {
	gone := call{method: "GET", path: "/api/v1/namespaces/" + s.namespace, aside: true}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(glance) {
		if err := s.unfinalize(ctx); err != nil {
			return err
		}
		memory, err := s.memory.do(ctx, gone)
		if err != nil {
			return err
		}
		real, err := s.real.do(ctx, gone)
		if err != nil || memory.Code == 404 && real.Code == 404 {
			return err
		}
	}
	return fmt.Errorf("the namespace %s does not go", s.namespace)
}

// unfinalize removes the finalizers of all objects, and deletes pods at once.
func (s *script) unfinalize(ctx context.Context) error {
	for resource := range kinds {
		for _, of := range []*side{s.memory, s.real} {
			if err := of.unfinalize(ctx, s.collection(resource)); err != nil {
				return err
			}
		}
	}
	for s.server.CollectGarbage() {
	}
	return nil
}

func (s *side) unfinalize(ctx context.Context, collection string) error {
	list, err := s.do(ctx, call{method: "GET", path: collection, aside: true})
	if err != nil {
		return err
	}
	body, _ := list.Body.(map[string]any)
	items, _ := body["items"].([]any)
	for _, item := range items {
		name, _ := inside(item.(map[string]any), "metadata")["name"].(string)
		one := call{method: "PATCH", path: collection + "/" + name, contentType: mergePatch, aside: true}
		one.body = marshal(fields{"metadata": fields{"finalizers": nil}})
		if _, err := s.do(ctx, one); err != nil {
			return err
		}
		if !strings.HasSuffix(collection, "/pods") {
			continue
		}
		one.method, one.contentType, one.body = "DELETE", asJSON, marshal(fields{"gracePeriodSeconds": 0})
		if _, err := s.do(ctx, one); err != nil {
			return err
		}
	}
	return nil
}
