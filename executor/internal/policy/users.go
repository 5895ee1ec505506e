package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"jobpolicy.dev/executor/internal/controller"
	"jobpolicy.dev/executor/wire"
)

// usersIndex finds Jobs and CronJobs by the policy that they name: <namespace>/<name>, or
// <namespace>/ for those that name none. Those that hold their options themselves are not in it.
const usersIndex = "jobpolicy.dev/policy"

func byPolicy(obj any) ([]string, error) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return nil, nil
	}
	name, named := wire.PolicyName(object.GetAnnotations())
	if !named && wire.HasPolicy(object.GetAnnotations()) {
		return nil, nil
	}
	return []string{userKey(object.GetNamespace(), name)}, nil
}

func userKey(namespace, policy string) string { return namespace + "/" + policy }

// followed are Jobs or CronJobs whose options may change with a policy.
type followed struct {
	objects *controller.Informers
	changed func(obj any)
}

// Follow calls changed with each object of a Set whose options may have changed because a policy, or a
// namespace's annotation, has. Call it before Run, and before the Set runs.
func (p *Policies) Follow(objects *controller.Informers, changed func(obj any)) error {
	if p == nil {
		return nil
	}
	if !p.follows(objects) {
		if err := objects.AddIndexers(cache.Indexers{usersIndex: byPolicy}); err != nil {
			return fmt.Errorf("index by policy: %w", err)
		}
	}
	p.followed = append(p.followed, followed{objects, changed})
	return nil
}

func (p *Policies) follows(objects *controller.Informers) bool {
	for _, f := range p.followed {
		if f.objects == objects {
			return true
		}
	}
	return false
}

func (p *Policies) policySeen(old, policy *object) {
	if old == nil || !policy.same(old) {
		p.tell(policy)
	}
}

func (p *Policies) policyGone(policy *object) { p.tell(policy) }

// tell says that a policy has changed.
func (p *Policies) tell(policy *object) {
	for _, f := range p.followed {
		for _, user := range p.users(f.objects, policy.Namespace, policy.Name) {
			f.changed(user)
		}
	}
}

// tellAll tells everybody who names a policy that the informer with this key has.
func (p *Policies) tellAll(informer string) {
	for _, f := range p.followed {
		for _, key := range f.objects.IndexValues(usersIndex) {
			namespace, policy, _ := strings.Cut(key, "/")
			if p.policies.Key(namespace) != informer {
				continue
			}
			if policy == "" && p.defaultOf(namespace) == "" {
				continue // They ask for nothing.
			}
			for _, user := range indexed(f.objects, namespace, policy) {
				f.changed(user)
			}
		}
	}
}

// users are the objects of a Set that use a policy.
func (p *Policies) users(objects *controller.Informers, namespace, policy string) []any {
	users := indexed(objects, namespace, policy)
	if p.defaultOf(namespace) == policy {
		users = append(users, indexed(objects, namespace, "")...)
	}
	return users
}

// indexed are those users, ordered by name.
func indexed(objects *controller.Informers, namespace, policy string) []any {
	found, err := objects.In(namespace).GetIndexer().ByIndex(usersIndex, userKey(namespace, policy))
	if err != nil {
		panic("the index was added in Follow: " + err.Error())
	}
	slices.SortFunc(found, func(a, b any) int {
		return strings.Compare(a.(metav1.Object).GetName(), b.(metav1.Object).GetName())
	})
	return found
}

// namespaceSeen tells those that name no policy if the namespace names another one for them.
func (p *Policies) namespaceSeen(old, ns *corev1.Namespace) {
	var before string
	if old != nil {
		before = old.Annotations[wire.DefaultPolicy]
	}
	if before == ns.Annotations[wire.DefaultPolicy] {
		return
	}
	for _, f := range p.followed {
		for _, user := range indexed(f.objects, ns.Name, "") {
			f.changed(user)
		}
	}
}
