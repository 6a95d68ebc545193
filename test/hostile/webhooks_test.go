package hostile

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

var trusting = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 100}} // as any client can

// post sends a body to a webhook as JSON.
func (s *site) post(ctx context.Context, path, body string) (status int, err error) {
	return s.postAs(ctx, "application/json", path, body)
}

func (s *site) postAs(ctx context.Context, contentType, path, body string) (status int, err error) {
	return sendAs(ctx, trusting, contentType, "https://"+s.webhooks+path, body)
}

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","namespace":"default",` +
	`"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"},"spec":{"containers":[%s]}}}}`

// answers sends a review of a small pod to the operator's pod webhook.
func (s *site) answers() error { return target{at: s.webhooks}.answers(context.Background()) }

// paths are the paths of all webhooks.
var paths = []string{
	"/mutate--v1-pod", "/validate--v1-pod-eviction", "/mutate-fissile-cloudfoundry-org-v1alpha1-pod", "/mutate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset",
	"/validate-enge-me-v1alpha1-statefulcluster", "/validate-clusterlabs-org-v1alpha1-replicatedstatefulset",
	"/validate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset", "/validate-apps-openshift-statefulsingleton-com-v1-statefulsingleton",
}

// atOnce returns a function that sends the body to each webhook in parallel, the given number of times.
func (s *site) atOnce(times int, body string) func(context.Context) {
	return func(ctx context.Context) {
		var all sync.WaitGroup
		for _, path := range paths {
			for range times {
				all.Go(func() { _, _ = s.post(ctx, path, body) })
			}
		}
		all.Wait()
	}
}

// filled returns a review whose list of containers has about the given size and repeats one element.
func filled(size int, element string) string {
	return fmt.Sprintf(review, strings.TrimSuffix(strings.Repeat(element+",", size/(len(element)+1)), ","))
}

// bodies sends requests of all shapes in sequence to all webhooks, without credentials.
func (s *site) bodies() func(context.Context) {
	shapes := []func(context.Context){
		s.atOnce(4, filled(6<<20, `{"name":""}`)),                                  // above the limit
		s.atOnce(8, filled(2900<<10, `{"name":""}`)),                               // below the limit
		s.atOnce(8, filled(2900<<10, `null`)),                                      // null elements
		s.atOnce(16, filled(300<<10, `{"name":""}`)),                               // max number of parts
		s.atOnce(8, filled(2900<<10, `{"name":"`+strings.Repeat("x", 1<<20)+`"}`)), // long strings
		s.atOnce(8, strings.Repeat("[", 50000)),                                    // deep
		s.atOnce(8, strings.Repeat("x", 2900<<10)),                                 // no JSON
	}
	return func(ctx context.Context) {
		for _, send := range shapes {
			send(context.WithoutCancel(ctx)) // always completed, also after the neighbors are served
		}
	}
}

// bodiesAsYAML sends bodies that a YAML decoder would expand to all webhooks.
func (s *site) bodiesAsYAML(ctx context.Context) {
	for _, body := range []string{
		filled(2900<<10, `{"name":""}`), // JSON is YAML; an element needs some hundred bytes of nodes
		aliases(),
	} {
		var all sync.WaitGroup
		for _, path := range paths {
			for _, contentType := range []string{"application/yaml", "text/yaml", "application/x-yaml", "application/json+yaml"} {
				all.Go(func() { _, _ = s.postAs(context.WithoutCancel(ctx), contentType, path, body) })
			}
		}
		all.Wait()
	}
}

// aliases returns a small YAML with nested aliases that multiply a string by ten on each level.
func aliases() string {
	var text strings.Builder
	text.WriteString("a0: &a0 " + strings.Repeat("x", 1000) + "\n")
	for i := 1; i < 9; i++ {
		before := fmt.Sprintf("*a%d,", i-1)
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(before, 10), ","))
	}
	return text.String()
}

// connections opens more connections than the operator accepts, from many addresses. Some send nothing,
// and some send a body slowly.
func (s *site) connections(ctx context.Context) {
	var all sync.WaitGroup
	for i := range 2000 {
		all.Go(func() {
			dialer := tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%200))}}, Config: &tls.Config{InsecureSkipVerify: true}}
			for ctx.Err() == nil {
				s.hold(ctx, &dialer, i%4 == 0)
			}
		})
	}
	all.Wait()
}

// hold keeps a connection open until the operator closes it.
func (s *site) hold(ctx context.Context, dialer *tls.Dialer, slowly bool) {
	connection, err := dialer.DialContext(ctx, "tcp", s.webhooks)
	if err != nil {
		select { // many are rejected immediately
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		return
	}
	defer connection.Close()
	ends := context.AfterFunc(ctx, func() { connection.Close() })
	defer ends()
	if slowly {
		_, _ = io.WriteString(connection, "POST /mutate--v1-pod HTTP/1.1\r\nHost: a\r\nContent-Length: 2900000\r\n\r\n{")
	}
	_, _ = io.Copy(io.Discard, connection)
}
