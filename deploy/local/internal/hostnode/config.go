package hostnode

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Config says who the node is and where it keeps its things. Every field but ContainerEnv and Logger is required.
type Config struct {
	// Kubeconfig is the path of the file that leads to the API server.
	Kubeconfig string
	// NodeName is the name of the Node object; a valid DNS subdomain.
	NodeName string
	// RootDir is the directory of everything that the node writes. It is created, and locked while the node runs: two
	// nodes cannot share it.
	RootDir string
	// Address is the host:port on which the kubelet API listens; port 0 picks a free one. The Node says which.
	Address string
	// ServingCertFile and ServingKeyFile are the PEM files of the kubelet API's certificate.
	ServingCertFile string
	ServingKeyFile  string
	// ClientCAFile is the PEM file of the authority whose client certificates may use the kubelet API. There is no
	// further authorization: whoever holds such a certificate may read every log.
	ClientCAFile string
	// CrashBackoffBase is the delay before the second restart of a container; each further one doubles it up to
	// CrashBackoffMax (the kubelet: 10 s and 300 s). A container that ran for twice CrashBackoffMax starts over.
	CrashBackoffBase time.Duration
	CrashBackoffMax  time.Duration
	// ContainerEnv are NAME=VALUE lines that every container starts with, before its own; for what differs between this
	// host and the images that the containers were written for.
	ContainerEnv []string
	// MaxPods is the Node's capacity for pods, which the scheduler heeds.
	MaxPods int
	// Logger receives the node's log; nil discards it.
	Logger *slog.Logger
}

// validate reports every unusable field by its name.
func (c Config) validate() error {
	var errs []error
	for _, f := range []struct{ name, value string }{
		{"Kubeconfig", c.Kubeconfig},
		{"RootDir", c.RootDir},
		{"ServingCertFile", c.ServingCertFile},
		{"ServingKeyFile", c.ServingKeyFile},
		{"ClientCAFile", c.ClientCAFile},
	} {
		if f.value == "" {
			errs = append(errs, inField(f.name, errors.New("must be set")))
		}
	}
	for _, problem := range validation.NameIsDNSSubdomain(c.NodeName, false) {
		errs = append(errs, inField("NodeName", fmt.Errorf("%q: %s", c.NodeName, problem)))
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		errs = append(errs, inField("Address", fmt.Errorf("must be host:port: %w", err)))
	}
	if c.CrashBackoffBase <= 0 {
		errs = append(errs, inField("CrashBackoffBase", fmt.Errorf("must be above 0, is %s", c.CrashBackoffBase)))
	}
	if c.CrashBackoffMax < c.CrashBackoffBase {
		errs = append(errs, inField("CrashBackoffMax", fmt.Errorf("must not be below CrashBackoffBase (%s), is %s", c.CrashBackoffBase, c.CrashBackoffMax)))
	}
	for _, line := range c.ContainerEnv {
		if name, _, found := strings.Cut(line, "="); !found || name == "" {
			errs = append(errs, inField("ContainerEnv", fmt.Errorf("must be NAME=VALUE, is %q", line)))
		}
	}
	if c.MaxPods <= 0 {
		errs = append(errs, inField("MaxPods", fmt.Errorf("must be above 0, is %d", c.MaxPods)))
	}
	return errors.Join(errs...)
}

// inField says which field of a Config an error is about.
func inField(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }

func (c Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}
