package release

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// sumsFile has the checksums of all other files, in the format of sha256sum.
const sumsFile = "SHA256SUMS"

func sorted(made images) []string { return slices.Sorted(maps.Keys(made)) }

// writeSums writes the checksums of all files, and signs them if there is a key.
func (r *Release) writeSums(context.Context, images) error {
	sums, err := r.sums()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, file := range sums {
		fmt.Fprintf(&text, "%s  %s\n", file.sum, file.name)
	}
	if err := r.write(sumsFile, text.Bytes()); err != nil || len(r.Key) == 0 {
		return err
	}
	signature, err := sign(r.Key, text.Bytes())
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return r.write(sumsFile+".sig", signature)
}

// sign returns the signature of a text in base64, as cosign does. It is deterministic.
func sign(key, text []byte) ([]byte, error) {
	signer, err := signerOf(key)
	if err != nil {
		return nil, err
	}
	var signature []byte
	switch k := signer.(type) {
	case ed25519.PrivateKey:
		signature = ed25519.Sign(k, text)
	case *ecdsa.PrivateKey:
		sum := sha256.Sum256(text)
		signature, err = k.Sign(nil, sum[:], crypto.SHA256) // deterministic: RFC 6979
	default:
		err = fmt.Errorf("a key of type %T is neither ECDSA nor Ed25519", signer)
	}
	if err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(signature) + "\n"), nil
}

// signerOf decodes a private key without a password.
func signerOf(key []byte) (any, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("it has no key in PEM")
	}
	switch block.Type {
	case "PRIVATE KEY":
		return x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	}
	return nil, fmt.Errorf("a %s is not supported: write it without a password, as openssl pkcs8 -topk8 -nocrypt does", block.Type)
}
