package hostnode

import (
	"context"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// tokenSource yields the contents of service-account volumes.
type tokenSource interface {
	token(ctx context.Context, namespace, account string, want *corev1.ServiceAccountTokenProjection) (string, error)
	// authority returns the data of the config map that holds the cluster's certificate authority.
	authority(ctx context.Context, namespace, name string) (map[string]string, error)
}

// tokenReuse is how long a token is handed to further pods of the same service account.
const tokenReuse = time.Minute

// tokenCache asks the API server for one token per service account and tokenReuse: a burst of short pods would otherwise
// have it sign one each.
type tokenCache struct {
	client kubernetes.Interface
	lookup lookup

	mu          sync.Mutex
	tokens      map[tokenKey]cachedToken
	authorities map[string]map[string]string
}

// A tokenKey has the UID of the service account, because a token of an earlier account of that name is refused.
type tokenKey struct {
	account  types.UID
	audience string
}

type cachedToken struct {
	token string
	asked time.Time
}

func newTokenCache(client kubernetes.Interface) *tokenCache {
	return &tokenCache{
		client:      client,
		lookup:      apiLookup{client},
		tokens:      make(map[tokenKey]cachedToken),
		authorities: make(map[string]map[string]string),
	}
}

func (t *tokenCache) token(ctx context.Context, namespace, account string, want *corev1.ServiceAccountTokenProjection) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	accounts := t.client.CoreV1().ServiceAccounts(namespace)
	current, err := accounts.Get(ctx, account, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	key := tokenKey{current.UID, want.Audience}
	if cached, ok := t.tokens[key]; ok && time.Since(cached.asked) < tokenReuse {
		return cached.token, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: want.ExpirationSeconds}}
	if want.Audience != "" {
		request.Spec.Audiences = []string{want.Audience}
	}
	asked := time.Now()
	answer, err := accounts.CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	t.tokens[key] = cachedToken{token: answer.Status.Token, asked: asked}
	return answer.Status.Token, nil
}

func (t *tokenCache) authority(ctx context.Context, namespace, name string) (map[string]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := namespace + "/" + name
	if data, ok := t.authorities[key]; ok {
		return data, nil
	}
	data, err := t.lookup.configMap(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	t.authorities[key] = data
	return data, nil
}
