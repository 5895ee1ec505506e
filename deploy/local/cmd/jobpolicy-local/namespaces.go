package main

import (
	"io"

	"jobpolicy.dev/deploy/local/internal/namespaces"
)

const namespacesAbout = `Sets up the namespaces that it was started in as their first process, and stays until all in them is
to end. "up --node=containers" starts it.`

func runNamespaces(args []string, stderr io.Writer) error {
	flags := newFlags("namespaces", namespacesAbout, stderr)
	config := flags.String("config", "", "`file` with the settings of the namespaces")
	if err := parseFlags(flags, args); err != nil {
		return err
	}
	return namespaces.Init(*config)
}
