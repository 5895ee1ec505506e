// Package kubeclient configures client-go: how to reach the API server, how fast,
// and where its log lines go.
package kubeclient

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"jobpolicy.dev/executor/podcache"
)

// Options say how to reach the API server. Names and defaults of the flags are
// those of kube-controller-manager.
type Options struct {
	Kubeconfig string
	QPS        float32
	Burst      int
}

// AddFlags defines the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig `file` with address and credentials of the API server. Default: those that a pod is given.")
	fs.Float32Var(&o.QPS, "kube-api-qps", 20, "Requests per second to the API server, on average. Events have a limit of their own, of the same size.")
	fs.IntVar(&o.Burst, "kube-api-burst", 30, "Requests to the API server that may be sent at once.")
}

// Validate checks the values. Errors name flags.
func (o *Options) Validate() error {
	var errs []error
	if o.QPS <= 0 {
		errs = append(errs, fmt.Errorf("--kube-api-qps must be above 0, is %g", o.QPS))
	}
	if o.Burst < 1 {
		errs = append(errs, fmt.Errorf("--kube-api-burst must be at least 1, is %d", o.Burst))
	}
	return errors.Join(errs...)
}

// Config reads the kubeconfig, or what a pod is given.
func (o *Options) Config(userAgent string) (*rest.Config, error) {
	cfg, err := o.base()
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = o.QPS, o.Burst
	cfg.UserAgent = userAgent
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return cfg, nil
}

func (o *Options) base() (*rest.Config, error) {
	if o.Kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig is not set, and this is not a pod: %w", err)
		}
		return cfg, nil
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return cfg, nil
}

// A Client also knows the time at the API server. Of pods it knows only what
// package podcache decodes.
type Client struct {
	kubernetes.Interface
	Clock *Clock
	core  typedcorev1.CoreV1Interface
}

// CoreV1 implements kubernetes.Interface.
func (c *Client) CoreV1() typedcorev1.CoreV1Interface { return c.core }

// New returns a client for cfg.
func New(cfg *rest.Config) (*Client, error) {
	own, clock := rest.CopyConfig(cfg), &Clock{}
	clock.Watch(own)
	if own.RateLimiter == nil && own.QPS > 0 { // else each of the two below makes one
		own.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(own.QPS, own.Burst)
	}
	transport, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	client, err := kubernetes.NewForConfigAndClient(own, transport)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	core, err := leanCore(own, transport)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	return &Client{client, clock, core}, nil
}

// leanCore is what the clientset has, but for how it decodes: the clientset
// overwrites the configured decoder with its own.
func leanCore(cfg *rest.Config, transport *http.Client) (typedcorev1.CoreV1Interface, error) {
	own := rest.CopyConfig(cfg)
	own.APIPath, own.GroupVersion = "/api", &corev1.SchemeGroupVersion
	own.NegotiatedSerializer = podcache.Serializer(rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion())
	client, err := rest.RESTClientForConfigAndClient(own, transport)
	if err != nil {
		return nil, err
	}
	return typedcorev1.New(client), nil
}

// NewForEvents returns a client for events, with a rate limit of its own: Jobs do
// not wait for what is told of them.
func NewForEvents(cfg *rest.Config) (typedcorev1.EventsGetter, error) {
	own := rest.CopyConfig(cfg)
	own.RateLimiter = nil
	client, err := typedcorev1.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("API client for events: %w", err)
	}
	return client, nil
}

// NewForLease returns a client with a rate limit of its own, whose requests end
// soon enough for a second try within the deadline.
func NewForLease(cfg *rest.Config, renewDeadline time.Duration) (kubernetes.Interface, error) {
	own := rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	own.Timeout = renewDeadline / 2
	return New(own)
}

// verbosity of klog when debug lines are wanted: state changes of informers and
// elections, but not every request.
const debugVerbosity = "2"

// RouteLogs makes client-go log to log, with its own debug lines if log shows debug.
func RouteLogs(log *slog.Logger) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if log.Enabled(context.Background(), slog.LevelDebug) {
		_ = flags.Set("v", debugVerbosity) // cannot fail: it is a number
	}
	klog.SetSlogLogger(log)
}
