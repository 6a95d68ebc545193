package release

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Names of cosign's signatures in a registry
// (github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md).
const (
	signatureMediaType  = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	signatureKind       = "cosign container image signature"
)

// signed is the signed content for an image: a "simple signing" payload.
type signed struct {
	Critical struct {
		Identity struct {
			DockerReference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			DockerManifestDigest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// SignPushed signs the image of a reference with a key, and pushes the signature into the same
// repository, where cosign and clusters' admission policies look for it. It returns the reference of
// the signature.
func SignPushed(ctx context.Context, key []byte, reference string, options ...remote.Option) (string, error) {
	at, err := name.ParseReference(reference)
	if err != nil {
		return "", err
	}
	options = append(options, remote.WithContext(ctx))
	head, err := remote.Head(at, options...)
	if err != nil {
		return "", err
	}
	var claim signed
	claim.Critical.Identity.DockerReference = at.Context().Name()
	claim.Critical.Image.DockerManifestDigest = head.Digest.String()
	claim.Critical.Type = signatureKind
	payload, err := json.Marshal(claim)
	if err != nil {
		return "", err
	}
	signature, err := sign(key, payload)
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", reference, err)
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer:       static.NewLayer(payload, signatureMediaType),
		MediaType:   signatureMediaType,
		Annotations: map[string]string{signatureAnnotation: string(bytes.TrimSpace(signature))},
	})
	if err != nil {
		return "", err
	}
	tag := at.Context().Tag(strings.Replace(head.Digest.String(), ":", "-", 1) + ".sig")
	return tag.String(), remote.Write(tag, image, options...)
}
