// Package webhook signs and sends webhooks according to Standard Webhooks (standardwebhooks.com, specification 1.0.0). By default
// it connects only to addresses on the public Internet.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// prefix is the beginning of every secret.
const prefix = "whsec_"

// Key decodes a secret, which is "whsec_" followed by 24 to 64 bytes in base64. The error does not contain the secret.
func Key(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, prefix)
	if !ok {
		return nil, fmt.Errorf("the secret of a webhook does not begin with %q: add it", prefix)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, fmt.Errorf("the secret of a webhook is not %q followed by 24 to 64 bytes in base64", prefix)
	}
	return key, nil
}

// Sign returns the value of the webhook-signature header, which contains a signature for each key.
func Sign(id string, at time.Time, body []byte, keys ...[]byte) string {
	var all []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// timeout is the maximum duration of an attempt. The specification recommends 15 to 30 s.
const timeout = 20 * time.Second

// Sender sends webhooks. It does not follow redirects or use a proxy.
type Sender struct{ client *http.Client }

// NewSender returns a Sender. Unless private is true, it connects only to addresses on the public Internet. It checks the address
// when it connects, after the name has been resolved, so that the name cannot resolve to a different address after the check.
func NewSender(private bool) *Sender {
	dialer := &net.Dialer{Timeout: timeout}
	if !private {
		dialer.Control = onlyPublic
	}
	return &Sender{&http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// CheckURL returns an error unless address is a valid URL for a receiver. Only private receivers may use http.
func CheckURL(address string, private bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("want the URL of a receiver, such as https://example.com/stone")
	case u.Scheme == "http" && !private:
		return errors.New("want an https URL: only private receivers may use http")
	}
	return nil
}

// A StatusError is a response status code outside the range 200 to 299.
type StatusError int

// Error returns the status.
func (e StatusError) Error() string {
	return fmt.Sprintf("the receiver answered with status %d %s", int(e), http.StatusText(int(e)))
}

// Send sends a webhook once, with the given additional headers, and returns an error unless the receiver accepts it. The error
// does not contain the URL, because that may contain a secret. If the receiver responded, the error is of type StatusError.
// Without keys, the webhook is not signed.
func (s *Sender) Send(ctx context.Context, address, id string, body []byte, header map[string]string, keys ...[]byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL of the receiver is invalid")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Stone-Webhook/1")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	if len(keys) > 0 {
		req.Header.Set("Webhook-Signature", Sign(id, now, body, keys...))
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return fmt.Errorf("the receiver was not reached: %w", err)
	}
	defer resp.Body.Close()
	const most = 64 << 10
	_, _ = io.CopyN(io.Discard, resp.Body, most) // read the rest, so that the connection can be reused
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return StatusError(resp.StatusCode)
	}
	return nil
}

// onlyPublic rejects connections to addresses outside the public Internet.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !public(at.Addr()) {
		return errors.New("its address is not public: receivers in private networks must be configured as private")
	}
	return nil
}

// special lists networks that are not part of the public Internet or are translated to other networks. It follows the IANA
// special-purpose address registries, without the networks that package netip recognizes.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}

// global is the part of the IPv6 address space that contains public addresses.
var global = netip.MustParsePrefix("2000::/3")

// public reports whether an address is part of the public Internet.
func public(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Zone() != "" || ip.Is6() && !global.Contains(ip) {
		return false
	}
	return !slices.ContainsFunc(special, func(network netip.Prefix) bool { return network.Contains(ip) })
}
