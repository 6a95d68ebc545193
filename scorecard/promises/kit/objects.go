package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Operations for objects of any kind.

// Put creates an object.
func (c *Cluster) Put(ctx context.Context, object client.Object) {
	c.ExpectWithOffset(1, c.Client.Create(ctx, object)).To(plain{})
}

// Read updates an object from the API server.
func (c *Cluster) Read(ctx context.Context, object client.Object) {
	c.ExpectWithOffset(1, c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(plain{})
}

// List lists objects.
func (c *Cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) {
	c.ExpectWithOffset(1, c.Client.List(ctx, list, options...)).To(plain{})
}

// Remove requests the deletion of an object.
func (c *Cluster) Remove(ctx context.Context, object client.Object, options ...client.DeleteOption) {
	c.ExpectWithOffset(1, c.Client.Delete(ctx, object, options...)).To(plain{})
}

// Change edits and updates an object, and retries on conflicts.
func Change[T client.Object](ctx context.Context, c *Cluster, object T, edit func(T)) {
	c.Until(ctx, "the change to be accepted", func(ctx context.Context) {
		c.Read(ctx, object)
		edit(object)
		c.Check(c.Client.Update(ctx, object))
	})
}

// Gone waits until the object does not exist.
func (c *Cluster) Gone(ctx context.Context, object client.Object) {
	c.Until(ctx, object.GetName()+" to be gone", func(ctx context.Context) {
		uid := object.GetUID()
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || (err == nil && object.GetUID() != uid) {
			return
		}
		c.Check(errors.Join(err, fmt.Errorf("it exists, with finalizers %v", object.GetFinalizers())))
	})
}

// Events returns the events about an object with that reason and these words in their notes.
func (c *Cluster) Events(ctx context.Context, about client.Object, reason, words string) []corev1.Event {
	var all corev1.EventList
	c.List(ctx, &all, client.InNamespace(about.GetNamespace()))
	return slices.DeleteFunc(all.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.UID != about.GetUID() || e.Reason != reason || !strings.Contains(e.Message, words)
	})
}

// Event waits for such an event, and returns the last one.
func (c *Cluster) Event(ctx context.Context, about client.Object, reason, words string) (last corev1.Event) {
	c.Until(ctx, "an event "+reason+" of "+about.GetName()+": "+words, func(ctx context.Context) {
		found := c.Events(ctx, about, reason, words)
		c.Expect(found).NotTo(BeEmpty(), "there is none")
		last = found[len(found)-1]
	})
	return last
}
