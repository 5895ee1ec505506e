package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"jobpolicy.dev/services/internal/issuer"
	"jobpolicy.dev/services/internal/servicemain"
)

// certificateOptions say which certificates to keep for the engine and its callers.
type certificateOptions struct {
	authority         string
	servers           []string
	clients           []string
	authorityDuration time.Duration
	leafDuration      time.Duration
	propagation       time.Duration
}

func (o *certificateOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.authority, "certificate-authority-secret", "", "`Secret` (namespace/name) for an authority. The executor makes it, renews it in time, and signs the certificates below with it. All the Secrets must exist; they may be empty. A new text in the Secret's annotation "+issuer.RotateAnnotation+" asks for a new authority. Empty: keep no certificates.")
	fs.StringArrayVar(&o.servers, "issue-server-certificate", nil, "`Secret=name[,name...]`: keep a server certificate for these DNS names in the Secret (namespace/name). May be repeated.")
	fs.StringArrayVar(&o.clients, "issue-client-certificate", nil, "`Secret=name`: keep a client certificate with this common name in the Secret (namespace/name). May be repeated.")
	fs.DurationVar(&o.authorityDuration, "certificate-authority-duration", 365*24*time.Hour, "How long an authority is valid. A new one is published after two thirds of that time. At least three times --certificate-duration.")
	fs.DurationVar(&o.leafDuration, "certificate-duration", 30*24*time.Hour, "How long certificates are valid. They are renewed after two thirds of that time. At least three times --certificate-propagation.")
	fs.DurationVar(&o.propagation, "certificate-propagation", 10*time.Minute, "How long everybody, including kubelets, may take to see a changed Secret. A new authority signs nothing before that time is over.")
}

func (o *certificateOptions) enabled() bool { return o.authority != "" }

// validate checks that the flags can be read and go together. Errors name flags.
func (o *certificateOptions) validate() error {
	if !o.enabled() {
		if len(o.servers)+len(o.clients) > 0 {
			return errors.New("--issue-server-certificate and --issue-client-certificate need --certificate-authority-secret")
		}
		return nil
	}
	authority, err := parseSecret("--certificate-authority-secret", o.authority)
	leaves, leavesErr := o.leaves()
	errs := servicemain.Problems{err, leavesErr}
	if err == nil && leavesErr == nil {
		errs = append(errs, distinct(authority, leaves))
	}
	errs.Require(leavesErr != nil || len(leaves) != 0, "--certificate-authority-secret needs --issue-server-certificate or --issue-client-certificate")
	errs.Require(o.propagation > 0, "--certificate-propagation must be above 0s, is %s", o.propagation)
	errs.Require(o.leafDuration/3 >= o.propagation,
		"--certificate-duration must be at least three times --certificate-propagation (%s), is %s", o.propagation, o.leafDuration)
	errs.Require(o.authorityDuration/3 >= o.leafDuration,
		"--certificate-authority-duration must be at least three times --certificate-duration (%s), is %s", o.leafDuration, o.authorityDuration)
	return errors.Join(errs...)
}

// distinct checks that each Secret has one use.
func distinct(authority types.NamespacedName, leaves []issuer.Leaf) error {
	var errs servicemain.Problems
	used := map[types.NamespacedName]bool{authority: true}
	for _, leaf := range leaves {
		errs.Require(!used[leaf.Secret],
			"--certificate-authority-secret, --issue-server-certificate and --issue-client-certificate must name different Secrets, %s is named twice", leaf.Secret)
		used[leaf.Secret] = true
	}
	return errors.Join(errs...)
}

func (o *certificateOptions) leaves() ([]issuer.Leaf, error) {
	var leaves []issuer.Leaf
	var errs []error
	add := func(flag, text string, server bool) {
		secret, name, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			errs = append(errs, fmt.Errorf("%s must be namespace/name=name, is %q", flag, text))
			return
		}
		at, err := parseSecret(flag, secret)
		errs = append(errs, err)
		leaf := issuer.Leaf{Secret: at, CommonName: name}
		if server {
			leaf.DNSNames = strings.Split(name, ",")
			errs = append(errs, checkDNSNames(flag, leaf.DNSNames))
			// The field has room for only 64 bytes. With DNS names nobody reads it.
			leaf.CommonName = ""
		}
		leaves = append(leaves, leaf)
	}
	for _, text := range o.servers {
		add("--issue-server-certificate", text, true)
	}
	for _, text := range o.clients {
		add("--issue-client-certificate", text, false)
	}
	return leaves, errors.Join(errs...)
}

func checkDNSNames(flag string, names []string) error {
	for _, name := range names {
		// An address of IPv4 has the form of a DNS name. Clients do not look for it there.
		isName := len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) == 0
		if !isName || net.ParseIP(name) != nil {
			return fmt.Errorf("%s must have DNS names, has %q", flag, name)
		}
	}
	return nil
}

func parseSecret(flag, text string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%s must name a Secret as namespace/name, is %q", flag, text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// newIssuer returns nil if no certificates are to be kept.
func (o *certificateOptions) newIssuer(client kubernetes.Interface, r prometheus.Registerer, log *slog.Logger) (*issuer.Issuer, error) {
	if !o.enabled() {
		return nil, nil
	}
	authority, err := parseSecret("--certificate-authority-secret", o.authority)
	if err != nil {
		return nil, err
	}
	leaves, err := o.leaves()
	if err != nil {
		return nil, err
	}
	return issuer.New(issuer.Config{
		Client: client.CoreV1(), Authority: authority, Leaves: leaves,
		AuthorityDuration: o.authorityDuration, LeafDuration: o.leafDuration, Propagation: o.propagation,
		Registerer: r, Logger: log,
	})
}
