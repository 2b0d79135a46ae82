// A network for pictures as they are stored for MNIST, labels as they are stored, and how many are right.
model Small {
    layers {
        dense(4, 8, activation: relu)
        dense(8, 3, activation: softmax)
    }
}

fn fit(model: Small, images: tensor<float32, [6, 4]>, labels: tensor<int32, [6]>, epochs: int32, learning_rate: float32) -> bool {
    let first = 0.0
    let total: float32 = 0.0
    for epoch in 0..epochs {
        total = 0.0
        for part in 0..2 {
            let at = part * 3
            let loss = cross_entropy(model.forward(images[at..at + 3]), labels[at..at + 3])
            total = total + loss
            let gradients = autograd(loss, model.parameters())
            model.update_parameters(gradients, learning_rate)
        }
        if epoch == 0 { first = total }
    }
    return total < first / 4.0
}

fn accuracy(model: Small, images: tensor<float32, [6, 4]>, labels: tensor<int32, [6]>) -> float32 {
    let said = argmax(model.forward(images), axis: 1)
    let correct = sum(said == labels)
    return (correct / 6.0) * 100.0
}

fn main() {
    let images: tensor<float32, [6, 4]> = load_mnist_images("test/lang/data/six-images-idx3-ubyte")
    let labels: tensor<int32, [6]> = load_mnist_labels("test/lang/data/six-labels-idx1-ubyte")
    print(images, labels)
    let model = Small()
    print(fit(model, images, labels, epochs: 100, learning_rate: 0.5))
    print(accuracy(model, images, labels))
    print([0, 1, 2, 0, 1, 1] != labels, sum(labels == [0, 1, 2, 0, 1, 1]))
}

// expect
// AutogradTensor([1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.2, 1.0, 0.0, 0.0, 0.2, 0.0, 1.0, 0.2, 0.0, 0.0, 0.2, 1.0, 0.0], shape=[6, 4]) AutogradTensor([0.0, 1.0, 2.0, 0.0, 1.0, 2.0], shape=[6])
// true
// 100.0
// AutogradTensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0], shape=[6]) 5.0
