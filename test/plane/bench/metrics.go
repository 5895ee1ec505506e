package bench

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// metrics are the samples of a program by name and labels, as its /metrics has
// them.
type metrics map[string]float64

// web asks programs on this machine. The controller manager signs its own
// certificate.
var web = &http.Client{
	Timeout:   profileTime + 30*time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
}

func fetch(url string) ([]byte, error) {
	response, err := web.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return body, err
}

// scrape adds the samples of a program to m.
func (m metrics) scrape(url string) error {
	body, err := fetch(url)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(body)) {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", url, line, err)
		}
		m[line[:at]] = value
	}
	return nil
}

func (m metrics) minus(earlier metrics) metrics {
	more := metrics{}
	for key, value := range m {
		more[key] = value - earlier[key]
	}
	return more
}

// sum adds up the samples of a name that have all of some labels, each written
// name="value".
func (m metrics) sum(name string, labels ...string) float64 {
	total := 0.0
	for key, value := range m {
		if sampleOf(key, name, labels) {
			total += value
		}
	}
	return total
}

func sampleOf(key, name string, labels []string) bool {
	rest, ok := strings.CutPrefix(key, name)
	if !ok || (rest != "" && rest[0] != '{') {
		return false
	}
	return !slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(rest, label) })
}

// A bucket is one bucket of a histogram: count observations were at most limit.
type bucket struct{ limit, count float64 }

// quantile is the upper limit of the bucket in which the quantile q of a histogram's
// observations lies; NaN without observations.
func (m metrics) quantile(q float64, name string) float64 {
	var buckets []bucket
	for key, value := range m {
		if !sampleOf(key, name+"_bucket", nil) {
			continue
		}
		_, limit, _ := strings.Cut(key, `le="`)
		limit, _, _ = strings.Cut(limit, `"`)
		if number, err := strconv.ParseFloat(limit, 64); err == nil {
			buckets = append(buckets, bucket{number, value})
		}
	}
	slices.SortFunc(buckets, func(a, b bucket) int { return cmp.Compare(a.limit, b.limit) })
	if len(buckets) == 0 || buckets[len(buckets)-1].count == 0 {
		return math.NaN()
	}
	total := buckets[len(buckets)-1].count
	at := slices.IndexFunc(buckets, func(b bucket) bool { return b.count >= q*total })
	return buckets[at].limit
}
