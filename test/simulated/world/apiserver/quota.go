package apiserver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
)

// admitToQuota is ResourceQuota, for pods. It counts the pods itself: it does not read the
// status of the quota, which a controller writes in a real cluster. The caller holds the
// lock.
func (s *Server) admitToQuota(namespace, name string, pod runtime.Object) error {
	for _, v := range s.tables["resourcequotas"].in(namespace) {
		q := v.external.(*corev1.ResourceQuota)
		if !coversPods(q) {
			continue
		}
		wanted, err := podUsage(pod, q)
		if err != nil {
			return err
		}
		if err := s.fits(q, wanted, name); err != nil {
			return err
		}
	}
	return nil
}

// coversPods is false for quotas with scopes, which nobody here uses.
func coversPods(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil
}

func podUsage(pod runtime.Object, q *corev1.ResourceQuota) (corev1.ResourceList, error) {
	used, err := core.PodUsageFunc(pod, clock.RealClock{})
	return quota.Mask(used, quota.ResourceNames(q.Spec.Hard)), err
}

func (s *Server) fits(q *corev1.ResourceQuota, wanted corev1.ResourceList, name string) error {
	used := corev1.ResourceList{}
	for _, v := range s.tables["pods"].in(q.Namespace) {
		one, err := podUsage(v.external, q)
		if err != nil {
			return err
		}
		used = quota.Add(used, one)
	}
	after := quota.Mask(quota.Add(used, wanted), quota.ResourceNames(wanted))
	fit, exceeded := quota.LessThanOrEqual(after, q.Spec.Hard)
	if fit {
		return nil
	}
	return errors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, fmt.Errorf(
		"exceeded quota: %s, requested: %s, used: %s, limited: %s", q.Name,
		listing(quota.Mask(wanted, exceeded)), listing(quota.Mask(used, exceeded)), listing(quota.Mask(q.Spec.Hard, exceeded))))
}

func listing(list corev1.ResourceList) string {
	var parts []string
	for name, amount := range list {
		parts = append(parts, string(name)+"="+amount.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
