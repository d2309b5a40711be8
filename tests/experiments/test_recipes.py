"""The recipes speak of models, metrics and settings that exist."""

import pytest

from advdiff import nn
from advdiff.cli.arguments import value
from advdiff.experiments.plan import combinations, plans, resolve
from advdiff.experiments.recipe import BUDGET_FIELDS, PROFILES
from advdiff.experiments.recipes import RECIPES, find
from advdiff.nn.registry import NEUTRAL


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_a_recipe_is_sound(recipe):
    assert set(recipe.models) <= set(nn.model_names())
    known = {"hidden_channels", *BUDGET_FIELDS}.union(*(nn.model_settings(model) for model in recipe.models))
    assert set(recipe.common) - {"theta"} <= known and set(recipe.grid) - {"theta"} <= known
    for profile in PROFILES:
        assert set(recipe.profile(profile).options) <= set(recipe.options)
        assert combinations(recipe, profile, {})
        for model in recipe.models:
            settings, _ = resolve(recipe, model, profile)
            hidden = settings.pop("hidden_channels")
            nn.build(model, 5, hidden, 2, **settings)


def test_the_synthetic_study_has_the_released_codes_settings():
    recipe = RECIPES["synthetic"]
    settings, budget = resolve(recipe, "advdifformer-s", "full")
    assert (settings["hidden_channels"], settings["heads"], settings["num_layers"]) == (8, 1, 1)
    assert (settings["beta"], settings["order"], settings["dropout"]) == (0.2, 1, 0.0)
    assert resolve(recipe, "advdifformer-i", "full")[0]["theta"] == 1.0
    assert resolve(recipe, "diff-multilayer", "full")[0]["num_layers"] == 2
    assert (budget.epochs, budget.learning_rate) == (500, 0.01)
    assert combinations(recipe, "full", {"labels": ["per_graph", "shared"], "shift": "block"}) == [
        {"shift": "block", "labels": labels, "edges": "independent", "num_nodes": 1000, "graph_share": 0.5}
        for labels in ("per_graph", "shared")
    ]


def test_a_switch_is_true_or_false():
    """The word "False" would count as true."""
    with pytest.raises(ValueError, match="diffusion is 'False'; it must be true or false"):
        resolve(RECIPES["arxiv"], "advdifformer-s", "full", {"diffusion": "False"})
    assert (
        value("False") is False
        and value("true") is True
        and value("None") is None
        and value("symmetric") == "symmetric"
    )


def test_a_setting_that_came_later_leaves_the_keys_of_earlier_plans_alone():
    """Where it has the value that changes nothing, it is not part of the plan; elsewhere it is."""
    for model, neutral in NEUTRAL.items():
        assert neutral.items() <= nn.model_settings(model).items()
        (plain,) = plans(find("molbace"), model, [0], "quick", {})
        (said,) = plans(find("molbace"), model, [0], "quick", neutral)
        assert plain.key == said.key and not neutral.keys() & plain.settings.keys()
    (other,) = plans(find("molbace"), "graphgps", [0], "quick", {"attention": "softmax"})
    assert other.settings["attention"] == "softmax"
