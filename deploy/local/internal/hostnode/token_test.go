package hostnode

import (
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"jobpolicy.dev/deploy/local/must"
)

// A namespace may be deleted and made anew: its service accounts have new UIDs then, and the API server refuses tokens of
// the old ones.
func TestTokensAreReusedForOneServiceAccount(t *testing.T) {
	client := fake.NewClientset()
	var signed int
	client.PrependReactor("create", "serviceaccounts/token", func(clienttesting.Action) (bool, runtime.Object, error) {
		signed++
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: fmt.Sprint("token ", signed)}}, nil
	})
	cache := newTokenCache(client)
	for _, step := range []struct{ account, audience, want string }{
		{"first", "", "token 1"},
		{"first", "", "token 1"},
		{"first", "vault", "token 2"},
		{"anew", "", "token 3"},
		{"anew", "", "token 3"},
	} {
		object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "default", UID: types.UID(step.account)}}
		_ = client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "ns", "default")
		must.Succeed(t, client.Tracker().Add(object))
		got, err := cache.token(t.Context(), "ns", "default", &corev1.ServiceAccountTokenProjection{Audience: step.audience})
		if err != nil || got != step.want {
			t.Errorf("account %q, audience %q: %q, %v; want %q", step.account, step.audience, got, err, step.want)
		}
	}
}
