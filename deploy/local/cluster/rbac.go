package cluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/deploy/local/internal/pki"
)

// ExecutorRole is the name of the executor's ClusterRole and of its binding. The manifests
// use other names, so both may exist in one cluster.
const ExecutorRole = "local:executor"

// nodeBinding binds the node to upstream's role system:node, which the API
// server makes but leaves unbound: with the Node authorizer, nodes have no need
// of it. The Node authorizer keeps one node from reading what belongs to
// another; with one node it would only cost memory.
const nodeBinding = "jobpolicy-local-node"

// kubeletBinding lets the API server use the kubelet's API.
const kubeletBinding = "jobpolicy-local-kubelet-api"

// executorRules are what the executor may do. They start from the roles of
// upstream's job, cronjob and ttl-after-finished controllers; beyond those, it
// reads single pods before it adopts them, patches CronJobs that ask for it,
// reads JobPolicies and the annotations of namespaces, writes the status of JobPolicies,
// and holds a lease when asked to elect a leader.
func executorRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("batch", "jobs", "get", "list", "watch", "create", "delete"),
		rule("batch", "jobs/status", "update"),
		rule("batch", "jobs/finalizers", "update"),
		rule("batch", "cronjobs", "get", "list", "watch", "patch"),
		rule("batch", "cronjobs/status", "update"),
		rule("batch", "cronjobs/finalizers", "update"),
		rule("jobpolicy.dev", "jobpolicies", "list", "watch"),
		rule("jobpolicy.dev", "jobpolicies/status", "patch"),
		rule("", "namespaces", "get", "list", "watch"),
		rule("", "pods", "get", "list", "watch", "create", "delete", "patch"),
		rule("", "events", "create", "patch"),
		// Used for Jobs with the option terminationDeadlineNode only.
		rule("", "nodes", "list", "watch"),
		// Used with --feature-gates=WorkloadWithJob=true only.
		rule("scheduling.k8s.io", "workloads", "get", "list", "watch", "create", "patch"),
		rule("scheduling.k8s.io", "podgroups", "get", "list", "watch", "create", "patch"),
		rule("coordination.k8s.io", "leases", "get", "create", "update"),
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// dnsRole is CoreDNS's ClusterRole, and the name of its binding.
const dnsRole = "system:coredns"

func dnsRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", "services", "list", "watch"),
		rule("", "pods", "list", "watch"),
		rule("", "namespaces", "list", "watch"),
		rule("discovery.k8s.io", "endpointslices", "list", "watch"),
	}
}

// grants are the roles and bindings of the components for which Kubernetes' bootstrap
// policy has no role or, as for nodes without the Node authorizer, no binding.
func (l *layout) grants() (map[string][]rbacv1.PolicyRule, []*rbacv1.ClusterRoleBinding) {
	roles := map[string][]rbacv1.PolicyRule{ExecutorRole: executorRules()}
	bindings := []*rbacv1.ClusterRoleBinding{bind(ExecutorRole, ExecutorRole, rbacv1.UserKind, pki.ExecutorUser)}
	if !l.enclosed() {
		return roles, append(bindings, bind(nodeBinding, "system:node", rbacv1.GroupKind, pki.NodeGroup))
	}
	roles[dnsRole] = dnsRules()
	return roles, append(bindings,
		bind(dnsRole, dnsRole, rbacv1.UserKind, pki.DNSUser),
		bind(kubeletBinding, "system:kubelet-api-admin", rbacv1.UserKind, pki.KubeletClientUser))
}

// grant writes the roles and bindings of the project's own components. It may
// be repeated; an existing role takes the rules of this version.
func (l *layout) grant(ctx context.Context, client kubernetes.Interface) error {
	roles, bindings := l.grants()
	for name, rules := range roles {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		if err := putRole(ctx, client, role); err != nil {
			return fmt.Errorf("cluster role %s: %w", role.Name, err)
		}
	}
	for _, binding := range bindings {
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cluster role binding %s: %w", binding.Name, err)
		}
	}
	return nil
}

func putRole(ctx context.Context, client kubernetes.Interface, role *rbacv1.ClusterRole) error {
	roles := client.RbacV1().ClusterRoles()
	_, err := roles.Create(ctx, role, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
	return err
}

func bind(name, role, kind, subject string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: subject}},
	}
}
