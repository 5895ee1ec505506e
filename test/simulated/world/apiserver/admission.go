package apiserver

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
)

// admitter does the work of the admission plugins of a real server that matter to
// Jobs: NamespaceLifecycle, Priority and DefaultTolerationSeconds. ResourceQuota is
// checked when the pod is stored, so that no other pod is stored in between. admitter also
// generates names, before the registry would.
type admitter struct{}

var _ admission.MutationInterface = admitter{}

// Handles implements admission.Interface.
func (admitter) Handles(operation admission.Operation) bool { return operation != admission.Connect }

// Admit implements admission.MutationInterface.
func (admitter) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	s := callerFrom(ctx).server
	if err := s.admitToNamespace(a); err != nil {
		return err
	}
	if a.GetOperation() != admission.Create || a.GetSubresource() != "" {
		return nil
	}
	if pod, ok := a.GetObject().(*core.Pod); ok {
		completePod(pod)
	}
	m, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(s.generateName(s.tables[a.GetResource().Resource], a.GetNamespace(), m.GetGenerateName()))
	}
	return nil
}

var immortal = map[string]bool{
	metav1.NamespaceDefault: true, metav1.NamespaceSystem: true, metav1.NamespacePublic: true,
}

// admitToNamespace is NamespaceLifecycle.
func (s *Server) admitToNamespace(a admission.Attributes) error {
	if a.GetResource().Resource == "namespaces" {
		if a.GetOperation() == admission.Delete && immortal[a.GetName()] {
			return errors.NewForbidden(a.GetResource().GroupResource(), a.GetName(), fmt.Errorf("this namespace may not be deleted"))
		}
		return nil
	}
	if a.GetNamespace() == "" || a.GetOperation() == admission.Delete {
		return nil
	}
	v := s.current("namespaces", types.NamespacedName{Name: a.GetNamespace()})
	if v == nil {
		return errors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, a.GetNamespace())
	}
	if a.GetOperation() != admission.Create || v.external.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	return terminating(a)
}

func terminating(a admission.Attributes) error {
	err := admission.NewForbidden(a,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.GetNamespace()))
	if status, ok := err.(*errors.StatusError); ok {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", a.GetNamespace()),
			Field:   "metadata.namespace",
		})
	}
	return err
}

// tolerated is how many seconds a pod stays on a node that is lost
// (DefaultTolerationSeconds).
const tolerated = 300

// completePod is Priority, without priority classes, and DefaultTolerationSeconds.
func completePod(pod *core.Pod) {
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = new(int32)
	}
	if pod.Spec.PreemptionPolicy == nil {
		policy := core.PreemptLowerPriority
		pod.Spec.PreemptionPolicy = &policy
	}
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if tolerates(pod, taint) {
			continue
		}
		seconds := int64(tolerated)
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, core.Toleration{
			Key: taint, Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
}

func tolerates(pod *core.Pod, taint string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t core.Toleration) bool {
		return (t.Key == taint || t.Key == "") && (t.Effect == core.TaintEffectNoExecute || t.Effect == "")
	})
}
