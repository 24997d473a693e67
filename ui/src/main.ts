import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';

const target = document.getElementById('app');
if (target) {
  // The page itself contains the text that is shown until the script has loaded.
  target.replaceChildren();
  mount(App, { target });
}
