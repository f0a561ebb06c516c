"""The network of OFCC: an LSTM that chooses labels one by one (Eq. 6 to 10 of the ANT paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from labelweave.nn.encoders import MLPEncoder

__all__ = ["ChainRun", "OrderFreeChain"]

# Probability above which a label turns positive and the chain continues.
_HALF = 0.5
# Logit of a known positive label; a known negative label has minus this logit.
_CERTAIN = 8.0


class ChainRun(NamedTuple):
    """Result of a chain: final logits, positive labels, and the logits of each step."""

    logits: Tensor
    chosen: Tensor
    steps: list[Tensor]


class OrderFreeChain(nn.Module):
    """LSTM that reads the features, its previous logits, and the labels chosen so far.

    Parameters
    ----------
    n_features, n_labels : int
    hidden_size : int
        Units of the LSTM.
    max_steps : int, optional
        Length of the chain; by default the number of labels.
    choose : {"probable", "every-step"}, default="probable"
        See the estimator.
    encoder, dropout, norm
        Hidden layers between the features and the chain.
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        hidden_size: int,
        *,
        max_steps: int | None = None,
        choose: str = "probable",
        encoder: Sequence[int] = (),
        dropout: float = 0.0,
        norm: str | None = None,
    ) -> None:
        super().__init__()
        self.n_steps = min(max_steps or n_labels, n_labels)
        self.choose = choose
        self.encoder = MLPEncoder(n_features, encoder, dropout=dropout, norm=norm)
        width = self.encoder.n_out
        self.first = nn.Linear(width, n_labels)  # Eq. 6
        # The gates of the LSTM see [x, logits, chosen, h] (Eq. 8). The part of x is the same at
        # each step, so that it is computed once.
        self.from_features = nn.Linear(width, 4 * hidden_size)
        self.from_chain = nn.Linear(2 * n_labels + hidden_size, 4 * hidden_size, bias=False)
        self.out = nn.Linear(hidden_size, n_labels)
        self.hidden_size = hidden_size

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x).logits

    def run(
        self,
        x: Tensor,
        *,
        start: Tensor | None = None,
        known: Tensor | None = None,
        all_steps: bool = False,
    ) -> ChainRun:
        """Run the chains of all rows; the result is deterministic.

        Parameters
        ----------
        x : Tensor of shape (n, d)
        start : Tensor of shape (n, L), optional
            Logits to start from (Eq. 3), which replace those of Eq. 6 where they are not NaN.
        known : Tensor of shape (n, L), optional
            1 and 0 for known labels, NaN for the others. Known labels stay fixed throughout the
            chain.
        all_steps : bool, default=False
            Continue to the last step even if no label can turn positive any more.
        """
        x = self.encoder(x)
        from_features = self.from_features(x)
        logits = self.first(x)
        if start is not None:
            logits = torch.where(torch.isnan(start), logits, start)
        chosen = torch.zeros_like(logits, dtype=torch.bool)
        fixed = chosen  # labels that cannot turn positive (again)
        if known is not None:
            chosen, fixed = known == 1, ~torch.isnan(known)
            logits = _with_known(logits, chosen, fixed)
        h = c = logits.new_zeros((x.shape[0], self.hidden_size))
        product = logits.new_ones(x.shape[0])
        final, steps = logits, []
        all_steps = all_steps or self.choose == "every-step"
        labels = torch.arange(logits.shape[1], device=logits.device)
        for k in range(self.n_steps):
            gates = from_features + self.from_chain(torch.cat([logits, chosen.to(h.dtype), h], 1))
            input_gate, forget_gate, cell_input, output_gate = gates.chunk(4, dim=1)
            c = torch.sigmoid(forget_gate) * c + torch.sigmoid(input_gate) * torch.tanh(cell_input)
            h = torch.sigmoid(output_gate) * torch.tanh(c)
            logits = self.out(h)
            if known is not None:
                logits = _with_known(logits, known == 1, ~torch.isnan(known))
            steps.append(logits)
            # The best label not chosen yet turns positive if its probability and the product of
            # those before it exceed one half (Eq. 9). Hard labels carry no gradient.
            best, label = logits.detach().masked_fill(fixed, -torch.inf).max(dim=1)
            probability = torch.sigmoid(best)
            turns = (probability > _HALF) & (product > _HALF)
            if self.choose == "every-step":
                turns = best > -torch.inf  # unless no label is left
            turned = (labels == label.unsqueeze(1)) & turns.unsqueeze(1)
            # The final logit of a label is that of the step in which it was chosen (Eq. 10), or
            # of the first step if it never was.
            final = logits if k == 0 else torch.where(turned, logits, final)
            chosen, fixed = chosen | turned, fixed | turned
            product = product * probability
            may_stop = not all_steps and not torch.compiler.is_compiling()
            if may_stop and not (product > _HALF).any():
                break
        return ChainRun(final, chosen, steps)


def _with_known(logits: Tensor, positive: Tensor, known: Tensor) -> Tensor:
    """Replace the logits of known labels."""
    return torch.where(known, torch.where(positive, _CERTAIN, -_CERTAIN), logits)
