package namespaces

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"jobpolicy.dev/deploy/local/internal/cgroups"
)

// Config is what [Init] has to know.
type Config struct {
	// Hostname is the name of the machine as seen from inside.
	Hostname string
	// Root is a directory for what programs write to the fixed places of a Linux
	// system: /var/lib, /var/log, /opt. Inside, it stands in their place.
	Root string
	// Visible are directories that keep their paths inside, even if they lie below
	// a place that is hidden there.
	Visible []string
	// NodeAddress is the address of the machine inside, at which pods reach it.
	NodeAddress netip.Addr
	// ServiceRange are the addresses of services.
	ServiceRange netip.Prefix
	// Cgroup is the control group of everything inside.
	Cgroup cgroups.Group
}

// readyFile tells, by existing, that the namespaces are set up.
const readyFile = "ready"

// Save writes the configuration for a new [Init]. Ready is false from then on.
func (c Config) Save(file string) error {
	if err := os.MkdirAll(c.Root, 0o700); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(c.Root, readyFile)); err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func load(file string) (Config, error) {
	var c Config
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

var errNotReady = errors.New("the namespaces are not set up yet")

// Ready returns nil once Init has set up the namespaces.
func (c Config) Ready() error {
	if _, err := os.Stat(filepath.Join(c.Root, readyFile)); err != nil {
		return errNotReady
	}
	return nil
}
