import jax
import jax.numpy as jnp

temperatures = jnp.array([19.0, 18.2, 17.6, 19.5, 21.8, 22.4, 20.9])


def thermostat(heating, celsius):
    if celsius < 18.0:
        heating = 1.0
    if celsius > 22.0:
        heating = 0.0
    return heating, heating


final, states = jax.lax.scan(thermostat, 0.0, temperatures)
print(states)
