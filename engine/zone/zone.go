// Package zone has the world's time zones, independently of the machine.
//
// time.LoadLocation first reads an environment variable and files of the machine, so
// the same request could get another answer elsewhere. Load reads only the copy of
// the IANA time zone database that is part of this package: release 2025c, packed as
// zoneinfo.zip by Go 1.26. To update it, replace it by lib/time/zoneinfo.zip of a
// newer Go and change the release here.
package zone

import (
	"archive/zip"
	_ "embed"
	"fmt"
	"strings"
	"time"
)

//go:embed zoneinfo.zip
var zoneinfo string

// data holds each zone's entry of the database by its name.
var data = unpack(zoneinfo)

// Load returns the zone of an IANA name, such as Europe/Berlin; upper and lower case
// matter. The empty name is UTC, as in the package time. There is no zone named
// Local. The error reads like that of time.LoadLocation.
func Load(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	entry, ok := data[name]
	if !ok {
		return nil, fmt.Errorf("unknown time zone %s", name)
	}
	return time.LoadLocationFromTZData(name, []byte(entry))
}

// Names returns every name that Load knows, in no particular order.
func Names() []string {
	names := make([]string, 0, len(data))
	for name := range data { // order does not matter: the caller is told so
		names = append(names, name)
	}
	return names
}

// unpack finds the entries of an archive whose files are stored uncompressed.
func unpack(archive string) map[string]string {
	r, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic(fmt.Sprintf("embedded time zone database: %v", err))
	}
	entries := make(map[string]string, len(r.File))
	for _, f := range r.File {
		offset, err := f.DataOffset()
		if err != nil || f.Method != zip.Store {
			panic(fmt.Sprintf("embedded time zone database: %s: method %d, error %v", f.Name, f.Method, err))
		}
		entries[f.Name] = archive[offset:][:f.UncompressedSize64]
	}
	return entries
}
