package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefused(t *testing.T) {
	pods, why := schema.GroupResource{Resource: "pods"}, errors.New("why")
	terminating := apierrors.NewForbidden(pods, "p", why)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                     {nil, false},
		"forbidden":                    {apierrors.NewForbidden(pods, "p", why), true},
		"forbidden, with context":      {fmt.Errorf("pod p: %w", apierrors.NewForbidden(pods, "p", why)), true},
		"invalid":                      {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), true},
		"bad request":                  {apierrors.NewBadRequest("why"), true},
		"method not allowed":           {apierrors.NewMethodNotSupported(pods, "patch"), true},
		"request too large":            {apierrors.NewRequestEntityTooLargeError("why"), true},
		"unauthorized":                 {apierrors.NewUnauthorized("why"), false},
		"conflict":                     {apierrors.NewConflict(pods, "p", why), false},
		"too many requests":            {apierrors.NewTooManyRequests("why", 1), false},
		"internal error":               {apierrors.NewInternalError(why), false},
		"service unavailable":          {apierrors.NewServiceUnavailable("why"), false},
		"server timeout":               {apierrors.NewServerTimeout(pods, "patch", 1), false},
		"timeout":                      {apierrors.NewTimeoutError("why", 1), false},
		"the namespace is terminating": {terminating, false},
		"no answer":                    {context.DeadlineExceeded, false},
		"put back":                     {ErrPutBack, false},
	} {
		if got := Refused(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Only an answer of the API server counts, and only about pods that a quota may admit later. A gang's PodGroup is no pod.
func TestQuotaRefused(t *testing.T) {
	pods, full := schema.GroupResource{Resource: "pods"}, errors.New("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1")
	podGroups, quotas := schema.GroupResource{Group: "scheduling.k8s.io", Resource: "podgroups"}, schema.GroupResource{Resource: "resourcequotas"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                      {nil, false},
		"a quota is used up":            {apierrors.NewForbidden(pods, "p", full), true},
		"the same, with context":        {fmt.Errorf("creating pod: %w", errors.Join(apierrors.NewForbidden(pods, "p", full), full)), true},
		"a quota is new":                {apierrors.NewForbidden(pods, "p", errors.New("status unknown for quota: q, resources: pods")), true},
		"others use the quota, too":     {apierrors.NewConflict(quotas, "q", errors.New("the object has been modified")), true},
		"another conflict":              {apierrors.NewConflict(pods, "p", errors.New("the object has been modified")), false},
		"a PodGroup":                    {apierrors.NewForbidden(podGroups, "p", full), false},
		"requests that a quota demands": {apierrors.NewForbidden(pods, "p", errors.New("failed quota: q: must specify limits.cpu")), false},
		"a webhook":                     {apierrors.NewForbidden(pods, "p", errors.New("admission webhook denied it")), false},
		"another code":                  {apierrors.NewInternalError(full), false},
		"no answer of the API server":   {full, false},
	} {
		if got := quotaRefused(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
