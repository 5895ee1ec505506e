// Package kubeclient configures client-go: how to reach the API server, how fast,
// and where its log lines go.
package kubeclient

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"jobpolicy.dev/executor/newerfields"
	"jobpolicy.dev/executor/podcache"
	"jobpolicy.dev/services/internal/servicemain"
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
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig `file` with address and credentials of the API server. Default: those of the pod.")
	fs.Float32Var(&o.QPS, "kube-api-qps", 20, "Average number of requests per second to the API server. Events have a separate limit of the same size.")
	fs.IntVar(&o.Burst, "kube-api-burst", 30, "How many requests may be sent to the API server at once.")
}

// Validate checks the values. Errors name flags.
func (o *Options) Validate() error {
	var errs servicemain.Problems
	errs.Require(o.QPS > 0 && !math.IsInf(float64(o.QPS), 0), "--kube-api-qps must be a number above 0, is %g", o.QPS)
	errs.Require(o.Burst >= 1, "--kube-api-burst must be at least 1, is %d", o.Burst)
	return errors.Join(errs...)
}

// Config reads the kubeconfig, or the configuration that Kubernetes gives to a pod.
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

// A Client is a clientset that also knows the API server's time. It decodes only those
// parts of pods that package podcache keeps, and loses no field of a template, a Job, a CronJob,
// a Lease or a Secret, whatever it was compiled with (package newerfields).
type Client struct {
	kubernetes.Interface
	Clock *Clock
	// Dynamic reads and writes objects of other kinds, under the same rate limit.
	Dynamic      dynamic.Interface
	core         typedcorev1.CoreV1Interface
	batch        typedbatchv1.BatchV1Interface
	coordination typedcoordinationv1.CoordinationV1Interface
}

// CoreV1 implements kubernetes.Interface.
func (c *Client) CoreV1() typedcorev1.CoreV1Interface { return c.core }

// BatchV1 implements kubernetes.Interface.
func (c *Client) BatchV1() typedbatchv1.BatchV1Interface { return c.batch }

// CoordinationV1 implements kubernetes.Interface.
func (c *Client) CoordinationV1() typedcoordinationv1.CoordinationV1Interface { return c.coordination }

// New returns a client for cfg.
func New(cfg *rest.Config) (*Client, error) {
	own, clock := rest.CopyConfig(cfg), &Clock{}
	clock.Watch(own)
	if own.RateLimiter == nil && own.QPS > 0 { // Otherwise each of the clients below makes its own.
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
	core, err := groupClient(own, transport, "/api", corev1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	batch, err := groupClient(own, transport, "/apis", batchv1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	coordination, err := groupClient(own, transport, "/apis", coordinationv1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	others, err := dynamic.NewForConfigAndClient(own, transport)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	return &Client{client, clock, others, typedcorev1.New(core), typedbatchv1.New(batch), typedcoordinationv1.New(coordination)}, nil
}

// groupClient is a client of one API group that decodes with packages podcache and newerfields. The
// clientset cannot do that, because it replaces a configured decoder by its own.
func groupClient(cfg *rest.Config, transport *http.Client, path string, group schema.GroupVersion) (rest.Interface, error) {
	own := rest.CopyConfig(cfg)
	own.APIPath, own.GroupVersion = path, &group
	codecs := rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()
	own.NegotiatedSerializer = newerfields.Serializer(podcache.Serializer(codecs))
	return rest.RESTClientForConfigAndClient(own, transport)
}

// NewForEvents returns a client for events. It has a rate limit of its own, so that
// events do not delay other writes.
func NewForEvents(cfg *rest.Config) (typedcorev1.EventsGetter, error) {
	own := rest.CopyConfig(cfg)
	own.RateLimiter = nil
	client, err := typedcorev1.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("API client for events: %w", err)
	}
	return client, nil
}

// NewForLease returns a client for the Lease. It shares neither rate limit nor connection
// with other clients: the list of all pods of a large cluster keeps a connection busy for
// seconds. Its requests time out early enough for a second try before the deadline.
func NewForLease(cfg *rest.Config, renewDeadline time.Duration) (kubernetes.Interface, error) {
	own := rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	own.RateLimiter = nil
	own.Timeout = renewDeadline / 2
	// client-go lets clients with equal settings share one transport, and so one HTTP/2
	// connection. No two clients with a dial function share one.
	if own.Dial == nil {
		own.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialKeepAlive}).DialContext
	}
	return New(own)
}

// client-go's defaults for dialing.
const (
	dialTimeout   = 30 * time.Second
	dialKeepAlive = 30 * time.Second
)

// debugVerbosity is klog's verbosity at log level debug: state changes of informers and
// elections, but not every request.
const debugVerbosity = "2"

// RouteLogs makes client-go log to log, including its debug lines if log shows them.
func RouteLogs(log *slog.Logger) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if log.Enabled(context.Background(), slog.LevelDebug) {
		_ = flags.Set("v", debugVerbosity) // cannot fail: it is a number
	}
	klog.SetSlogLogger(log)
}
