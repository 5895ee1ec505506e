package kubeclient

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// NewForSecrets returns a client with a rate limit of its own, so that certificates do not
// wait for Jobs.
func NewForSecrets(cfg *rest.Config) (kubernetes.Interface, error) {
	own := rest.AddUserAgent(rest.CopyConfig(cfg), "certificates")
	own.RateLimiter = nil
	client, err := New(own)
	if err != nil {
		return nil, fmt.Errorf("API client for secrets: %w", err)
	}
	return client, nil
}

// A Secret is the last known content of one Secret.
type Secret struct {
	name      types.NamespacedName
	store     cache.Store
	reflector *cache.Reflector
}

// NewSecret returns a Secret that is unknown before Run. Run lists and watches only this
// Secret, so rights on its name are enough.
func NewSecret(client kubernetes.Interface, name types.NamespacedName) *Secret {
	secrets := client.CoreV1().Secrets(name.Namespace)
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			return secrets.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			only(&o)
			return secrets.Watch(ctx, o)
		},
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	return &Secret{name: name, store: store, reflector: cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.Secret{}, store,
		cache.ReflectorOptions{Name: "secret " + name.String(), MinWatchTimeout: 5 * time.Minute},
	)}
}

// Run follows the Secret until ctx is done.
func (s *Secret) Run(ctx context.Context) { s.reflector.RunWithContext(ctx) }

// Read returns the Secret's value of the key.
func (s *Secret) Read(key string) ([]byte, error) {
	object, there, err := s.store.GetByKey(s.name.String())
	if err != nil {
		return nil, err
	}
	secret, ok := object.(*corev1.Secret)
	if !there || !ok {
		return nil, fmt.Errorf("secret %s is not known yet", s.name)
	}
	value, ok := secret.Data[key]
	if !ok {
		return nil, fmt.Errorf("secret %s has no %s yet", s.name, key)
	}
	return value, nil
}
