package kubeclient_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"jobpolicy.dev/services/internal/kubeclient"
	"jobpolicy.dev/services/internal/testenv"
)

func TestASecretIsFollowed(t *testing.T) {
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: "executor-tls"}}
	client := fake.NewClientset(object)
	secret := kubeclient.NewSecret(client, types.NamespacedName{Namespace: "sys", Name: "executor-tls"})
	if _, err := secret.Read("tls.crt"); err == nil || err.Error() != "secret sys/executor-tls is not known yet" {
		t.Errorf("before anything is known: %v", err)
	}
	go secret.Run(t.Context())
	wantError(t, secret, "secret sys/executor-tls has no tls.crt yet")
	object.Data = map[string][]byte{"tls.crt": []byte("certificate")}
	if _, err := client.CoreV1().Secrets("sys").Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() error {
		have, err := secret.Read("tls.crt")
		if err == nil && string(have) != "certificate" {
			err = fmt.Errorf("it reads %q", have)
		}
		return err
	})
	if err := client.CoreV1().Secrets("sys").Delete(t.Context(), object.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantError(t, secret, "secret sys/executor-tls is not known yet")
}

func wantError(t *testing.T, secret *kubeclient.Secret, want string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if _, err := secret.Read("tls.crt"); err == nil || err.Error() != want {
			return fmt.Errorf("error %v, want %q", err, want)
		}
		return nil
	})
}
